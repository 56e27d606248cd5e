// SPDX-License-Identifier: Apache-2.0
// The layout id as text: "tg4.1:n=13312,k=2048,g=128,s=bf16". Reading accepts exactly what writing produces.
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "kernels/api/error.h"
#include "kernels/format/format.h"

namespace okl {
namespace {

// The longest line: 13 letters of a name, a version, two 63-bit numbers and a 32-bit one.
constexpr size_t kTextBytes = 96;

const char* scale_word(uint16_t type) { return type == OMNI_DTYPE_BF16 ? "bf16" : type == OMNI_DTYPE_F32 ? "f32" : "none"; }

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  bool literal(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  // Decimal digits without sign or leading zeros, so that one layout has one text.
  template <typename T>
  bool number(T* out) {
    if (rest_.empty() || rest_[0] < '0' || rest_[0] > '9') return false;
    if (rest_.size() > 1 && rest_[0] == '0' && rest_[1] >= '0' && rest_[1] <= '9') return false;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *out);
    if (error != std::errc()) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool format(omni_format* out) {
    for (uint32_t value = 0; value <= OMNI_FORMAT_CODES_S8; ++value) {
      const std::string_view name = format_name(static_cast<omni_format>(value));
      if (!name.empty() && rest_.starts_with(name) && rest_.substr(name.size()).starts_with('.')) {
        rest_.remove_prefix(name.size());
        *out = static_cast<omni_format>(value);
        return true;
      }
    }
    return false;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

}  // namespace
}  // namespace okl

extern "C" {

omni_status omni_layout_to_text(const omni_layout* layout, char* text, size_t bytes) {
  if (layout == nullptr || text == nullptr) return okl::fail(OMNI_ERR_NULL, "%s is NULL", layout == nullptr ? "layout" : "text");
  if (const omni_status status = okl::check_layout(*layout, "layout"); status != OMNI_OK) return status;
  char line[okl::kTextBytes];
  const std::string_view name = okl::format_name(static_cast<omni_format>(layout->format));
  const int length = std::snprintf(
      line, sizeof line, "%.*s.%u:n=%lld,k=%lld,g=%u,s=%s%s%s", static_cast<int>(name.size()), name.data(), layout->version,
      static_cast<long long>(layout->n), static_cast<long long>(layout->k), layout->group, okl::scale_word(layout->scale_type),
      (layout->flags & OMNI_LAYOUT_ZEROS) != 0 ? ",zeros" : "", (layout->flags & OMNI_LAYOUT_SCRUBBED) != 0 ? ",scrubbed" : "");
  if (length < 0 || static_cast<size_t>(length) >= bytes) {
    return okl::fail(OMNI_ERR_BUFFER_SIZE, "text holds %zu bytes and %d are needed", bytes, length + 1);
  }
  std::memcpy(text, line, static_cast<size_t>(length) + 1);
  return okl::succeed();
}

omni_status omni_layout_from_text(const char* text, omni_layout* out) {
  if (text == nullptr || out == nullptr) return okl::fail(OMNI_ERR_NULL, "%s is NULL", text == nullptr ? "text" : "out");
  okl::Reader reader(text);
  omni_format format = OMNI_FORMAT_NONE;
  uint16_t version = 0;
  int64_t n = 0, k = 0;
  uint32_t group = 0;
  if (!reader.format(&format) || !reader.literal(".") || !reader.number(&version) || !reader.literal(":n=") || !reader.number(&n) ||
      !reader.literal(",k=") || !reader.number(&k) || !reader.literal(",g=") || !reader.number(&group) || !reader.literal(",s=")) {
    return okl::fail(OMNI_ERR_LAYOUT, "\"%.80s\" is no layout id", text);
  }
  const omni_dtype scale_type = reader.literal("bf16") ? OMNI_DTYPE_BF16 : reader.literal("f32") ? OMNI_DTYPE_F32 : OMNI_DTYPE_NONE;
  if (scale_type == OMNI_DTYPE_NONE && !reader.literal("none"))
    return okl::fail(OMNI_ERR_LAYOUT, "\"%.80s\" is no layout id", text);
  uint16_t chosen = 0;
  if (reader.literal(",zeros")) chosen |= OMNI_LAYOUT_ZEROS;
  if (reader.literal(",scrubbed")) chosen |= OMNI_LAYOUT_SCRUBBED;
  if (!reader.at_end()) return okl::fail(OMNI_ERR_LAYOUT, "\"%.80s\" is no layout id", text);
  if (version != okl::format_version(format)) {
    return okl::fail(OMNI_ERR_LAYOUT, "\"%.80s\": version %u is unknown", text, version);
  }
  omni_layout layout;
  if (omni_layout_init(&layout, format, n, k, group, scale_type) != OMNI_OK) {
    return okl::fail(OMNI_ERR_LAYOUT, "\"%.80s\" describes no valid layout", text);
  }
  layout.flags |= chosen;
  if (omni_layout_check(&layout) != OMNI_OK) return okl::fail(OMNI_ERR_LAYOUT, "\"%.80s\" describes no valid layout", text);
  *out = layout;
  return okl::succeed();
}

}  // extern "C"
