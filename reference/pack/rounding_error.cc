// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/rounding_error.h"

#include <cmath>

#include "reference/core/half.h"
#include "reference/core/parallel.h"

namespace ref {
namespace {

constexpr float kLargest = 1e15F;

// Without a branch, so that it is vectorised.
bool has_unusable(const float* row, int64_t k) {
  uint32_t found = 0;
  for (int64_t i = 0; i < k; ++i) found |= static_cast<uint32_t>(!(std::fabs(row[i]) <= kLargest));
  return found != 0;
}

}  // namespace

std::optional<int64_t> find_unusable(const float* w, int64_t rows, int64_t k, const omni_parallel* parallel) {
  std::vector<uint8_t> bad(static_cast<size_t>(rows));
  parallel_for(parallel, rows, [&](int64_t row) { bad[static_cast<size_t>(row)] = has_unusable(w + row * k, k) ? 1 : 0; });
  for (int64_t row = 0; row < rows; ++row) {
    if (bad[static_cast<size_t>(row)] == 0) continue;
    for (int64_t i = 0; i < k; ++i) {
      if (!(std::fabs(w[row * k + i]) <= kLargest)) return row * k + i;
    }
  }
  return std::nullopt;
}

// `stored(row, column0, column1, error, energy)` adds up one run of a row; runs are cut by the caller's group.
template <typename Stored>
void RoundingError::add_rows(const float* w, int64_t rows, int64_t k, const Stored& stored) {
  std::vector<double> error(static_cast<size_t>(rows)), energy(static_cast<size_t>(rows));
  parallel_for(parallel_, rows, [&](int64_t row) {
    double squares = 0;
    for (int64_t i = 0; i < k; ++i) squares += static_cast<double>(w[row * k + i]) * static_cast<double>(w[row * k + i]);
    energy[static_cast<size_t>(row)] = squares;
    error[static_cast<size_t>(row)] = stored(row);
  });
  for (size_t row = 0; row < error.size(); ++row) {
    error_ += error[row];
    energy_ += energy[row];
  }
}

void RoundingError::add(const float* w, int64_t rows, int64_t k, int64_t group, const QuantisedRows& stored) {
  const int64_t groups = (k + group - 1) / group;
  add_rows(w, rows, k, [&](int64_t row) {
    double sum = 0;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t cell = row * groups + g;
      const float scale = stored.scales[cell];
      const float zero = stored.offsets != nullptr ? 8 : static_cast<float>(stored.zeros[cell]);
      const float offset = stored.offsets != nullptr ? stored.offsets[cell] : 0;
      for (int64_t i = g * group; i < std::min(k, (g + 1) * group); ++i) {
        const float value = (static_cast<float>(stored.codes[row * k + i]) - zero) * scale + offset;
        const double difference = static_cast<double>(w[row * k + i]) - static_cast<double>(value);
        sum += difference * difference;
      }
    }
    return sum;
  });
}

void RoundingError::add_int8(const float* w, int64_t rows, int64_t k, int64_t group, const int8_t* codes, const float* scales) {
  const int64_t groups = (k + group - 1) / group;
  add_rows(w, rows, k, [&](int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const double value = static_cast<double>(codes[row * k + i]) * static_cast<double>(scales[row * groups + i / group]);
      const double difference = static_cast<double>(w[row * k + i]) - value;
      sum += difference * difference;
    }
    return sum;
  });
}

void RoundingError::add_bf16(const float* w, int64_t rows, int64_t k) {
  add_rows(w, rows, k, [&](int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < k; ++i) {
      const float value = widen_bf16(round_bf16(w[row * k + i]));
      const double difference = static_cast<double>(w[row * k + i]) - static_cast<double>(std::fabs(value) < 0x1p-56F ? 0 : value);
      sum += difference * difference;
    }
    return sum;
  });
}

double RoundingError::relative() const { return energy_ > 0 ? std::sqrt(error_ / energy_) : 0; }

}  // namespace ref
