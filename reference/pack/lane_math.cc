// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/lane_math.h"

#include <vector>

#include "reference/pack/vector_clones.h"

namespace ref {
namespace {

// Inputs whose squares are summed up before they meet the sum of those before them, so that fp32 is enough for a whole row.
constexpr int64_t kRun = 128;

// Such comparisons are single instructions for maximum and minimum.
inline float clamp_code(float q, float low, float high) {
  q = q > low ? q : low;
  return q < high ? q : high;
}

inline void invert(const float* scale, float* inverse) {
  for (int64_t j = 0; j < kLanes; ++j) inverse[j] = 1 / scale[j];
}

REF_VECTOR_CLONES void quick_errors_of(const float* w, const float* importance, int64_t count, const GroupScales& at,
                                       float* errors) {
  alignas(64) float inverse[kLanes], total[kLanes] = {};
  invert(at.scale, inverse);
  for (int64_t begin = 0; begin < count; begin += kRun) {
    alignas(64) float sum[kLanes] = {};
    const int64_t end = begin + kRun < count ? begin + kRun : count;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < kLanes; ++j) {
        const float u = w[i * kLanes + j] - at.offset[j];
        const float d = u - nearest_whole(clamp_code(u * inverse[j], -8, 7)) * at.scale[j];
        sum[j] += importance[i] * (d * d);
      }
    }
    for (int64_t j = 0; j < kLanes; ++j) total[j] += sum[j];
  }
  for (int64_t j = 0; j < kLanes; ++j) errors[j] = total[j];
}

REF_VECTOR_CLONES void code_sums_of(const float* w, const float* importance, int64_t count, const GroupScales& at, CodeSums* sums) {
  alignas(64) float inverse[kLanes];
  invert(at.scale, inverse);
  *sums = {};
  for (int64_t begin = 0; begin < count; begin += kRun) {
    alignas(64) float q1[kLanes] = {}, q2[kLanes] = {}, qw[kLanes] = {};
    const int64_t end = begin + kRun < count ? begin + kRun : count;
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < kLanes; ++j) {
        const float weight = w[i * kLanes + j];
        const float q = nearest_whole(clamp_code((weight - at.offset[j]) * inverse[j], -8, 7)), weighted = importance[i] * q;
        q1[j] += weighted;
        q2[j] += weighted * q;
        qw[j] += weighted * weight;
      }
    }
    for (int64_t j = 0; j < kLanes; ++j) {
      sums->q[j] += q1[j];
      sums->qq[j] += q2[j];
      sums->qw[j] += qw[j];
    }
  }
}

// sum_i e_i (2 sum_{k < i} M_ik e_k + M_ii e_i): half of the products.
REF_VECTOR_CLONES void quadratic(const float* moments, int64_t ld, const float* e, int64_t count, double* errors) {
  alignas(64) double total[kLanes] = {};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    const float *m0 = moments + i * ld, *m1 = m0 + ld, *m2 = m1 + ld, *m3 = m2 + ld;
    alignas(64) float s0[kLanes] = {}, s1[kLanes] = {}, s2[kLanes] = {}, s3[kLanes] = {};
    for (int64_t k = 0; k < i; ++k) {
      for (int64_t j = 0; j < kLanes; ++j) {
        const float x = e[k * kLanes + j];
        s0[j] += m0[k] * x;
        s1[j] += m1[k] * x;
        s2[j] += m2[k] * x;
        s3[j] += m3[k] * x;
      }
    }
    for (int64_t j = 0; j < kLanes; ++j) {
      const float *at = e + i * kLanes + j, e0 = at[0], e1 = at[kLanes], e2 = at[2 * kLanes], e3 = at[3 * kLanes];
      const float row0 = e0 * (2 * s0[j] + m0[i] * e0), row1 = e1 * (2 * (s1[j] + m1[i] * e0) + m1[i + 1] * e1);
      const float row2 = e2 * (2 * (s2[j] + m2[i] * e0 + m2[i + 1] * e1) + m2[i + 2] * e2);
      const float row3 = e3 * (2 * (s3[j] + m3[i] * e0 + m3[i + 1] * e1 + m3[i + 2] * e2) + m3[i + 3] * e3);
      total[j] += static_cast<double>((row0 + row1) + (row2 + row3));
    }
  }
  for (; i < count; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < i; ++k) sum += moments[i * ld + k] * e[k * kLanes + j];
      const float last = e[i * kLanes + j];
      total[j] += static_cast<double>(last * (2 * sum + moments[i * ld + i] * last));
    }
  }
  for (int64_t j = 0; j < kLanes; ++j) errors[j] = total[j];
}

REF_VECTOR_CLONES void squares(const float* importance, const float* e, int64_t count, double* errors) {
  alignas(64) double total[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const double error = e[i * kLanes + j];
      total[j] += importance[i] * (error * error);
    }
  }
  for (int64_t j = 0; j < kLanes; ++j) errors[j] = total[j];
}

REF_VECTOR_CLONES void codes_from(const float* w, int64_t count, const float* scale, const float* origin, const float* zero,
                                  uint8_t* codes) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const float q = nearest_whole(clamp_code((w[i * kLanes + j] - origin[j]) / scale[j], -zero[j], 15 - zero[j]));
      codes[i * kLanes + j] = static_cast<uint8_t>(static_cast<int>(q + zero[j]));
    }
  }
}

REF_VECTOR_CLONES void residuals_from(const float* w, const uint8_t* codes, int64_t count, const float* scale, const float* origin,
                                      const float* zero, float* residuals) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const float product = (static_cast<float>(codes[i * kLanes + j]) - zero[j]) * scale[j];
      residuals[i * kLanes + j] = w[i * kLanes + j] - (product + origin[j]);
    }
  }
}

REF_VECTOR_CLONES void add_outer_to(const float* factors, const float* x, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j < kLanes; ++j) y[i * kLanes + j] += factors[i] * x[j];
  }
}

constexpr float kNoOrigin[kLanes] = {};
// Zero points are whole codes, so that there is nothing to take off the weights.
const float* origin_of(const GroupScales& at, Zeros zeros) { return zeros == Zeros::kOffsets ? at.offset : kNoOrigin; }

}  // namespace

void quick_errors(const GroupBatch& batch, const GroupScales& at, float* errors) {
  quick_errors_of(batch.w(), batch.importance(), batch.count(), at, errors);
}

void code_sums(const GroupBatch& batch, const GroupScales& at, CodeSums* sums) {
  code_sums_of(batch.w(), batch.importance(), batch.count(), at, sums);
}

void nearest_codes(const float* w, int64_t count, const GroupScales& at, Zeros zeros, uint8_t* codes) {
  codes_from(w, count, at.scale, origin_of(at, zeros), at.zero, codes);
}

void code_residuals(const float* w, const uint8_t* codes, int64_t count, const GroupScales& at, Zeros zeros, float* residuals) {
  residuals_from(w, codes, count, at.scale, origin_of(at, zeros), at.zero, residuals);
}

void stored_errors(const GroupBatch& batch, const GroupScales& at, Zeros zeros, double* errors) {
  thread_local std::vector<uint8_t> codes;
  thread_local std::vector<float> residuals;
  codes.resize(static_cast<size_t>(batch.count() * kLanes));
  residuals.resize(codes.size());
  nearest_codes(batch.w(), batch.count(), at, zeros, codes.data());
  code_residuals(batch.w(), codes.data(), batch.count(), at, zeros, residuals.data());
  if (batch.moments() == nullptr) {
    squares(batch.importance(), residuals.data(), batch.count(), errors);
  } else {
    quadratic(batch.moments(), batch.moments_ld(), residuals.data(), batch.count(), errors);
  }
}

void add_outer(const float* factors, const float* x, int64_t count, float* y) { add_outer_to(factors, x, count, y); }

}  // namespace ref
