// SPDX-License-Identifier: Apache-2.0
// What tests of the quantisers share: weights, runs and their errors.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "reference/pack/quantiser.h"

namespace ref {

struct Rows {
  std::vector<float> w;
  int64_t rows, k;
};

struct Quantised {
  std::vector<uint8_t> codes, zeros;
  std::vector<float> scales, offsets;
};

inline int64_t groups_of(int64_t group, int64_t k) { return group <= 0 ? 1 : (k + group - 1) / group; }

inline Rows normal_rows(int64_t rows, int64_t k, uint32_t seed, float deviation = 0.02F) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, deviation);
  Rows made{{}, rows, k};
  for (int64_t i = 0; i < rows * k; ++i) made.w.push_back(normal(generator));
  return made;
}

inline Rows odd_rows(int64_t k) {
  Rows made = normal_rows(9, k, 77);
  for (int64_t i = 0; i < k; ++i) {
    const auto at = [&](int64_t row) -> float& { return made.w[static_cast<size_t>(row * k + i)]; };
    at(1) = at(1) * at(1) * at(1) * 1e4F;  // heavy tails
    at(2) = std::fabs(at(2)) + 0.1F;       // far from 0
    at(3) = -std::fabs(at(3));
    at(4) *= 1e-7F;
    at(5) *= 1e16F;
    at(6) = 0.125F;
    at(7) = 0;
    at(8) = i == 5 ? -3.0F : 0;
  }
  return made;
}

// One thread, the last index first.
inline constexpr omni_parallel kBackwards = {sizeof(omni_parallel), 1, nullptr,
                                             [](void*, int64_t count, omni_task task, void* context) {
                                               for (int64_t i = count; i-- > 0;) task(context, i);
                                             }};

inline Quantised quantise(const Rows& rows, int64_t group, bool symmetric, Quantiser quantiser, bool offsets = false,
                          const InputMoments* inputs = nullptr, const omni_parallel* parallel = nullptr) {
  const auto groups = static_cast<size_t>(rows.rows * groups_of(group, rows.k));
  Quantised out{std::vector<uint8_t>(rows.w.size()), std::vector<uint8_t>(offsets ? 0 : groups), std::vector<float>(groups),
                std::vector<float>(offsets ? groups : 0)};
  const QuantisedRows target{out.codes.data(), out.scales.data(), offsets ? nullptr : out.zeros.data(),
                             offsets ? out.offsets.data() : nullptr};
  if (quantiser == Quantiser::kGptq) {
    quantise_rows_gptq(rows.w.data(), rows.rows, rows.k, rows.k, group, symmetric, *inputs, target, parallel);
  } else {
    quantise_rows(rows.w.data(), rows.rows, rows.k, rows.k, group, symmetric, quantiser, inputs, target, parallel);
  }
  return out;
}

// w - w', [rows][k].
inline std::vector<double> residuals(const Rows& rows, const Quantised& found, int64_t group) {
  const int64_t size = group <= 0 ? rows.k : group, groups = groups_of(group, rows.k);
  std::vector<double> all;
  for (int64_t i = 0; i < rows.rows * rows.k; ++i) {
    const auto g = static_cast<size_t>(i / rows.k * groups + i % rows.k / size), at = static_cast<size_t>(i);
    const double scale = static_cast<double>(found.scales[g]);
    const double value = found.offsets.empty() ? (found.codes[at] - found.zeros[g]) * scale
                                               : (found.codes[at] - 8) * scale + static_cast<double>(found.offsets[g]);
    all.push_back(static_cast<double>(rows.w[at]) - value);
  }
  return all;
}

// By group: squares, or with the moments of its inputs.
inline std::vector<double> group_errors(const Rows& rows, const Quantised& found, int64_t group, const InputMoments* inputs) {
  const std::vector<double> e = residuals(rows, found, group);
  const int64_t size = group <= 0 ? rows.k : group;
  std::vector<double> errors;
  for (int64_t row = 0; row < rows.rows; ++row) {
    for (int64_t begin = 0; begin < rows.k; begin += size) {
      const int64_t count = std::min(size, rows.k - begin);
      std::vector<float> moments(static_cast<size_t>(count * count));
      if (inputs != nullptr) inputs->copy_block(begin, count, count, moments.data());
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) {
        const double a = e[static_cast<size_t>(row * rows.k + begin + i)];
        if (inputs == nullptr) sum += a * a;
        for (int64_t j = 0; inputs != nullptr && j < count; ++j) {
          sum += a * static_cast<double>(moments[static_cast<size_t>(i * count + j)]) *
                 e[static_cast<size_t>(row * rows.k + begin + j)];
        }
      }
      errors.push_back(sum);
    }
  }
  return errors;
}

inline double total_error(const Rows& rows, const Quantised& found, int64_t group) {
  double sum = 0;
  for (const double error : group_errors(rows, found, group, nullptr)) sum += error;
  return sum;
}

// sum (x e)^2 over all inputs and rows.
inline double output_error(const Rows& rows, const Quantised& found, int64_t group, const std::vector<float>& x) {
  const std::vector<double> e = residuals(rows, found, group);
  double sum = 0;
  for (size_t t = 0; t < x.size(); t += static_cast<size_t>(rows.k)) {
    for (int64_t row = 0; row < rows.rows; ++row) {
      double y = 0;
      for (int64_t i = 0; i < rows.k; ++i)
        y += static_cast<double>(x[t + static_cast<size_t>(i)]) * e[static_cast<size_t>(row * rows.k + i)];
      sum += y * y;
    }
  }
  return sum;
}

}  // namespace ref
