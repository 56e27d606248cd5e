// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/angles.h"

#include <bit>

namespace okl {
namespace {

// Adding it to a double of magnitude below 2^51 rounds that to an integer.
constexpr double kRounder = 0x1.8p52;

// ln2 in a part whose products with exponents are exact, and the rest.
constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33;

// log(x) of a normal x > 0: x = 2^e * m, m in [0.7, 1.42); log(m) = 2 atanh((m-1) / (m+1)), a series in s^2 < 0.03.
double logarithm(double x) {
  auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int64_t>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | uint64_t{1023} << 52);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
  double series = 0.0;
  for (int n = 23; n >= 3; n -= 2) series = (series + 1.0 / n) * s2;
  const auto e = static_cast<double>(exponent);
  return e * kLn2High + (2.0 * s + (2.0 * s * series + e * kLn2Low));
}

// exp(x) for 0 <= x < 709.
double exponential(double x) {
  const double n = (x * 1.4426950408889634 + kRounder) - kRounder;
  const double r = (x - n * kLn2High) - n * kLn2Low;  // at most 0.35
  double sum = 1.0;
  for (int k = 16; k >= 1; --k) sum = 1.0 + sum * r / k;
  return sum * std::bit_cast<double>(static_cast<uint64_t>(1023 + static_cast<int64_t>(n)) << 52);
}

// pi/2 in parts of 27 bits, so that a product with an integer below 2^24 is exact, and the rest.
constexpr double kHalfPi1 = 0x1.921fb54p+0, kHalfPi2 = 0x1.10b4610p-30, kHalfPi3 = 0x1.a62633145c06ep-58;

// Taylor, |r| <= pi/4: the first term left out is below 2^-56.
double sine(double r) {
  const double r2 = r * r;
  double sum = 1.0;
  for (int k = 16; k >= 2; k -= 2) sum = 1.0 - sum * r2 / (k * (k + 1));
  return r * sum;
}
double cosine(double r) {
  const double r2 = r * r;
  double sum = 1.0;
  for (int k = 17; k >= 1; k -= 2) sum = 1.0 - sum * r2 / (k * (k + 1));
  return sum;
}

}  // namespace

float rope_frequency(double theta, uint32_t j, uint32_t rot) {
  // The exponent is a quotient in fp32, and the power is rounded before its reciprocal is.
  const float exponent = static_cast<float>(2 * j) / static_cast<float>(rot);
  return 1.0F / static_cast<float>(exponential(static_cast<double>(exponent) * logarithm(theta)));
}

CosSin rope_cos_sin(float angle) {
  const auto x = static_cast<double>(angle);
  const double n = (x * 0.63661977236758134 + kRounder) - kRounder;  // quarter turns
  const double r = ((x - n * kHalfPi1) - n * kHalfPi2) - n * kHalfPi3;
  const double c = cosine(r), s = sine(r);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return {static_cast<float>(c), static_cast<float>(s)};
    case 1:
      return {static_cast<float>(-s), static_cast<float>(c)};
    case 2:
      return {static_cast<float>(-c), static_cast<float>(-s)};
    default:
      return {static_cast<float>(s), static_cast<float>(-c)};
  }
}

}  // namespace okl
