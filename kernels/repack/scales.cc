// SPDX-License-Identifier: Apache-2.0
// omni_pack_scales: scales and zero points of a checkpoint become the scale array of a layout. omni_convert_scales: from one layout
// to another.
#include <cstring>

#include "kernels/api/error.h"
#include "kernels/format/bf16.h"
#include "kernels/format/checked.h"
#include "kernels/format/f16.h"
#include "kernels/format/format.h"
#include "kernels/repack/scale_array.h"
#include "omni/repack.h"

namespace okl {
namespace {

// Shift of channel 8c + i in a word of zero points, packed in order and in AWQ's order.
constexpr int kShiftInOrder[8] = {0, 4, 8, 12, 16, 20, 24, 28};
constexpr int kShiftAwq[8] = {0, 16, 4, 20, 8, 24, 12, 28};

float load_real(uint16_t type, const void* data, int64_t index) {
  switch (type) {
    case OMNI_DTYPE_BF16:
      return bf16_to_float(static_cast<const uint16_t*>(data)[index]);
    case OMNI_DTYPE_F16:
      return f16_to_float(static_cast<const uint16_t*>(data)[index]);
    default:
      return static_cast<const float*>(data)[index];
  }
}

int64_t element_size(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

class Job {
 public:
  explicit Job(const omni_scales_args& args)
      : args_(args), n_(args.layout.n), groups_(ceil_div(args.layout.k, args.layout.group)), words_(ceil_div(n_, 8)) {}

  omni_status check() const;
  ScaleEntry entry(int64_t group, int64_t channel) const;
  omni_status run() const;

 private:
  int zero_point(int64_t group, int64_t channel) const;

  const omni_scales_args& args_;
  int64_t n_, groups_, words_;
};

int Job::zero_point(int64_t group, int64_t channel) const {
  const auto* words = static_cast<const uint32_t*>(args_.zeros);
  switch (args_.zeros_kind) {
    case OMNI_ZEROS_U8:
      return static_cast<const uint8_t*>(args_.zeros)[group * n_ + channel];
    case OMNI_ZEROS_GPTQ_V1:
      // Stored minus one, and never wrapped: a stored 15 is zero point 16.
      return static_cast<int>(words[group * words_ + channel / 8] >> kShiftInOrder[channel % 8] & 15) + 1;
    case OMNI_ZEROS_GPTQ_V2:
      return static_cast<int>(words[group * words_ + channel / 8] >> kShiftInOrder[channel % 8] & 15);
    case OMNI_ZEROS_AWQ:
      return static_cast<int>(words[group * words_ + channel / 8] >> kShiftAwq[channel % 8] & 15);
    case OMNI_ZEROS_CT_PACKED:
      return static_cast<int>(words[channel / 8 * groups_ + group] >> kShiftInOrder[channel % 8] & 15);
    default:
      return 8;
  }
}

ScaleEntry Job::entry(int64_t group, int64_t channel) const {
  const int64_t index = args_.scales_by_channel != 0 ? channel * groups_ + group : group * n_ + channel;
  const float scale = load_real(args_.scale_type, args_.scales, index);
  if (args_.zeros_kind == OMNI_ZEROS_REAL) return entry_of_zero(scale, load_real(args_.scale_type, args_.zeros, index));
  if (args_.zeros_kind == OMNI_ZEROS_SYMMETRIC) return entry_of_zero_point(scale, 8);
  const int point = zero_point(group, channel);
  return {scale, static_cast<float>(8 - point) * scale, point};
}

omni_status Job::check() const {
  if (args_.scale_type != OMNI_DTYPE_BF16 && args_.scale_type != OMNI_DTYPE_F16 && args_.scale_type != OMNI_DTYPE_F32) {
    return fail(OMNI_ERR_TYPE, "scale_type %u is not bf16, f16 or f32", args_.scale_type);
  }
  if (args_.zeros_kind > OMNI_ZEROS_REAL) return fail(OMNI_ERR_TYPE, "zeros_kind %u is unknown", args_.zeros_kind);
  if (args_.layout.format == OMNI_FORMAT_W16 || args_.layout.format == OMNI_FORMAT_W32) {
    return fail(OMNI_ERR_LAYOUT, "layout: %s has no scales", format_name(static_cast<omni_format>(args_.layout.format)).data());
  }
  if (args_.layout.format == OMNI_FORMAT_W8S && args_.zeros_kind != OMNI_ZEROS_SYMMETRIC) {
    return fail(OMNI_ERR_TYPE, "zeros_kind %u: w8s has no zeros", args_.zeros_kind);
  }
  if (n_ == 0) return OMNI_OK;
  if (args_.scales == nullptr) return fail(OMNI_ERR_NULL, "scales is NULL");
  if (args_.zeros_kind != OMNI_ZEROS_SYMMETRIC && args_.zeros == nullptr) return fail(OMNI_ERR_NULL, "zeros is NULL");
  if (args_.out == nullptr) return fail(OMNI_ERR_NULL, "out is NULL");
  int64_t needed = 0;
  if (!layout_scales_bytes(args_.layout, &needed)) {
    return fail(OMNI_ERR_OVERFLOW, "size of scales does not fit");
  }
  if (args_.out_bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "out_bytes is %zu and %lld are needed", args_.out_bytes, static_cast<long long>(needed));
  }
  const auto misaligned = [](const void* data, int64_t alignment) {
    return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) != 0;
  };
  const int64_t zeros_alignment = args_.zeros_kind == OMNI_ZEROS_REAL ? element_size(args_.scale_type)
                                  : args_.zeros_kind <= OMNI_ZEROS_U8 ? 1
                                                                      : 4;
  if (misaligned(args_.scales, element_size(args_.scale_type))) return fail(OMNI_ERR_ALIGNMENT, "scales is not aligned");
  if (misaligned(args_.zeros, zeros_alignment)) return fail(OMNI_ERR_ALIGNMENT, "zeros is not aligned");
  if (misaligned(args_.out, element_size(args_.layout.scale_type))) return fail(OMNI_ERR_ALIGNMENT, "out is not aligned");
  return OMNI_OK;
}

omni_status Job::run() const {
  const auto entry_at = [this](int64_t group, int64_t channel) { return entry(group, channel); };
  if (const omni_status status = check_entries(args_.layout, entry_at); status != OMNI_OK) return status;
  for (int64_t group = 0; group < groups_; ++group) {
    for (int64_t channel = 0; channel < n_; ++channel) store_entry(args_.layout, args_.out, group, channel, entry(group, channel));
  }
  return succeed();
}

bool misaligned_scales(const omni_layout& layout, const void* data) {
  return reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(element_size(layout.scale_type)) != 0;
}

omni_status check_array(const char* what, const omni_layout& layout, const void* data, size_t bytes) {
  int64_t needed = 0;
  if (!layout_scales_bytes(layout, &needed)) return fail(OMNI_ERR_OVERFLOW, "%s: size of scales does not fit", what);
  if (needed == 0) return OMNI_OK;
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", what);
  if (bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "%s_bytes is %zu and %lld are needed", what, bytes, static_cast<long long>(needed));
  }
  if (misaligned_scales(layout, data)) return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned", what);
  return OMNI_OK;
}

omni_status check_conversion(const omni_convert_scales_args& args) {
  const omni_layout &from = args.source_layout, &to = args.destination_layout;
  if (const omni_status status = check_layout(from, "source_layout"); status != OMNI_OK) return status;
  if (const omni_status status = check_layout(to, "destination_layout"); status != OMNI_OK) return status;
  for (const omni_layout* layout : {&from, &to}) {
    if (layout->format != OMNI_FORMAT_TG4 && layout->format != OMNI_FORMAT_W4S) {
      return fail(OMNI_ERR_LAYOUT, "%s_layout is %s, neither tg4 nor w4s", layout == &from ? "source" : "destination",
                  format_name(static_cast<omni_format>(layout->format)).data());
    }
  }
  if (from.n != to.n || from.k != to.k || from.group != to.group) {
    return fail(OMNI_ERR_SHAPE, "layouts differ: n %lld and %lld, k %lld and %lld, group %u and %u", static_cast<long long>(from.n),
                static_cast<long long>(to.n), static_cast<long long>(from.k), static_cast<long long>(to.k), from.group, to.group);
  }
  if (const omni_status status = check_array("source", from, args.source, args.source_bytes); status != OMNI_OK) return status;
  return check_array("destination", to, args.destination, args.destination_bytes);
}

}  // namespace
}  // namespace okl

extern "C" omni_status omni_pack_scales(const omni_scales_args* args) {
  using namespace okl;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (args->size < sizeof *args) return fail(OMNI_ERR_STRUCT_SIZE, "size is %u, below %zu", args->size, sizeof *args);
  if (const omni_status status = check_layout(args->layout, "layout"); status != OMNI_OK) return status;
  const Job job(*args);
  if (const omni_status status = job.check(); status != OMNI_OK) return status;
  return job.run();
}

extern "C" omni_status omni_convert_scales(const omni_convert_scales_args* args) {
  using namespace okl;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (args->size < sizeof *args) return fail(OMNI_ERR_STRUCT_SIZE, "size is %u, below %zu", args->size, sizeof *args);
  if (const omni_status status = check_conversion(*args); status != OMNI_OK) return status;
  const omni_layout &from = args->source_layout, &to = args->destination_layout;
  const auto entry = [&](int64_t group, int64_t channel) { return load_entry(from, args->source, group, channel); };
  if (const omni_status status = check_entries(to, entry); status != OMNI_OK) return status;
  for (int64_t group = 0; group < ceil_div(from.k, int64_t{from.group}); ++group) {
    for (int64_t channel = 0; channel < from.n; ++channel)
      store_entry(to, args->destination, group, channel, entry(group, channel));
  }
  return succeed();
}
