// SPDX-License-Identifier: Apache-2.0
#include "kernels/api/error.h"

#include <cstdarg>
#include <cstdio>

namespace okl {
namespace {

thread_local char last_error[256];

}  // namespace

omni_status fail(omni_status status, const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return status;
}

omni_status succeed() noexcept {
  last_error[0] = '\0';
  return OMNI_OK;
}

omni_status succeed_with(const char* format, ...) noexcept {
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(last_error, sizeof last_error, format, arguments);
  va_end(arguments);
  return OMNI_OK;
}

}  // namespace okl

extern "C" {

const char* omni_last_error(void) { return okl::last_error; }

const char* omni_version(void) {
#define OMNI_TEXT_(x) #x
#define OMNI_TEXT(x) OMNI_TEXT_(x)
  return OMNI_TEXT(OMNI_VERSION_MAJOR) "." OMNI_TEXT(OMNI_VERSION_MINOR) "." OMNI_TEXT(OMNI_VERSION_PATCH);
#undef OMNI_TEXT
#undef OMNI_TEXT_
}

const char* omni_status_name(omni_status status) {
  switch (status) {
#define OMNI_STATUS(x) \
  case x:              \
    return #x
    OMNI_STATUS(OMNI_OK);
    OMNI_STATUS(OMNI_ERR_NULL);
    OMNI_STATUS(OMNI_ERR_STRUCT_SIZE);
    OMNI_STATUS(OMNI_ERR_SHAPE);
    OMNI_STATUS(OMNI_ERR_GROUP);
    OMNI_STATUS(OMNI_ERR_ALIGNMENT);
    OMNI_STATUS(OMNI_ERR_STRIDE);
    OMNI_STATUS(OMNI_ERR_OVERFLOW);
    OMNI_STATUS(OMNI_ERR_RANGE);
    OMNI_STATUS(OMNI_ERR_TYPE);
    OMNI_STATUS(OMNI_ERR_LAYOUT);
    OMNI_STATUS(OMNI_ERR_CODE);
    OMNI_STATUS(OMNI_ERR_BUFFER_SIZE);
    OMNI_STATUS(OMNI_ERR_NO_KERNEL);
    OMNI_STATUS(OMNI_ERR_UNKNOWN_NAME);
    OMNI_STATUS(OMNI_ERR_OUT_OF_MEMORY);
    OMNI_STATUS(OMNI_ERR_JIT);
    OMNI_STATUS(OMNI_ERR_ENVIRONMENT);
    OMNI_STATUS(OMNI_ERR_PROFILE);
    OMNI_STATUS(OMNI_ERR_INEXACT);
    OMNI_STATUS(OMNI_ERR_STATE);
#undef OMNI_STATUS
  }
  return "OMNI_ERR_?";
}

}  // extern "C"
