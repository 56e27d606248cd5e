// SPDX-License-Identifier: Apache-2.0
// omni_pack_scales: scales and zero points of a checkpoint become (scale, zero) pairs, z = (8 - zp) * s with one fp32 rounding.
#include <cmath>
#include <cstring>

#include "kernels/api/error.h"
#include "kernels/format/bf16.h"
#include "kernels/format/checked.h"
#include "kernels/format/f16.h"
#include "kernels/format/format.h"
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
  // The first (group, channel) that does not fit bf16 exactly, as group * N + channel; -1: there is none.
  int64_t first_inexact() const;
  void write() const;
  int64_t n() const { return n_; }

 private:
  struct Pair {
    float scale, zero;
  };
  Pair pair(int64_t group, int64_t channel) const;
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

Job::Pair Job::pair(int64_t group, int64_t channel) const {
  const int64_t index = args_.scales_by_channel != 0 ? channel * groups_ + group : group * n_ + channel;
  const float scale = load_real(args_.scale_type, args_.scales, index);
  if (args_.zeros_kind == OMNI_ZEROS_REAL) return {scale, load_real(args_.scale_type, args_.zeros, index)};
  // +0 also for a negative or infinite scale, where 0 * s would be something else.
  if (args_.zeros_kind == OMNI_ZEROS_SYMMETRIC) return {scale, 0.0F};
  return {scale, static_cast<float>(8 - zero_point(group, channel)) * scale};
}

omni_status Job::check() const {
  if (args_.scale_type != OMNI_DTYPE_BF16 && args_.scale_type != OMNI_DTYPE_F16 && args_.scale_type != OMNI_DTYPE_F32) {
    return fail(OMNI_ERR_TYPE, "scale_type %u is not bf16, f16 or f32", args_.scale_type);
  }
  if (args_.zeros_kind > OMNI_ZEROS_REAL) return fail(OMNI_ERR_TYPE, "zeros_kind %u is unknown", args_.zeros_kind);
  if (n_ == 0) return OMNI_OK;
  if (args_.scales == nullptr) return fail(OMNI_ERR_NULL, "scales is NULL");
  if (args_.zeros_kind != OMNI_ZEROS_SYMMETRIC && args_.zeros == nullptr) return fail(OMNI_ERR_NULL, "zeros is NULL");
  if (args_.out == nullptr) return fail(OMNI_ERR_NULL, "out is NULL");
  int64_t needed = 0;
  if (!scales_bytes(n_, args_.layout.k, args_.layout.group, element_size(args_.layout.scale_type), &needed)) {
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

int64_t Job::first_inexact() const {
  if (args_.layout.scale_type != OMNI_DTYPE_BF16) return -1;
  // A NaN keeps being one, whatever its payload.
  const auto exact = [](float value) { return std::isnan(value) || bf16_to_float(bf16_round_ieee(value)) == value; };
  for (int64_t group = 0; group < groups_; ++group) {
    for (int64_t channel = 0; channel < n_; ++channel) {
      const Pair values = pair(group, channel);
      if (!exact(values.scale) || !exact(values.zero)) return group * n_ + channel;
    }
  }
  return -1;
}

void Job::write() const {
  const bool narrow = args_.layout.scale_type == OMNI_DTYPE_BF16;
  for (int64_t group = 0; group < groups_; ++group) {
    for (int64_t channel = 0; channel < n_; ++channel) {
      const Pair values = pair(group, channel);
      const int64_t at = 2 * (group * n_ + channel);
      if (narrow) {
        auto* out = static_cast<uint16_t*>(args_.out) + at;
        out[0] = bf16_round_ieee(values.scale);
        out[1] = bf16_round_ieee(values.zero);
      } else {
        auto* out = static_cast<float*>(args_.out) + at;
        out[0] = values.scale;
        out[1] = values.zero;
      }
    }
  }
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
  if (const int64_t at = job.first_inexact(); at >= 0 && job.n() > 0) {  // an empty array holds none
    return fail(OMNI_ERR_INEXACT, "scale or zero of group %lld, channel %lld is no bf16 number",
                static_cast<long long>(at / job.n()), static_cast<long long>(at % job.n()));
  }
  job.write();
  return succeed();
}
