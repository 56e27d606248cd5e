// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace omnibench {

const std::vector<uint8_t>& RowsWorkload::expected() {
  if (!expected_.empty()) return expected_;
  const std::unique_ptr<Runner> portable = runner({"", "portable"});
  uint8_t* const output = data(copy(0), output_part());
  const size_t bytes = parts()[output_part()].bytes;
  const std::vector<uint8_t> kept(output, output + bytes);
  spoil_output();
  portable->run(copy(0));
  std::vector<uint8_t> found(output, output + bytes);
  std::copy(kept.begin(), kept.end(), output);
  try {
    compare_bound(found.data(), output_f32(), false);
  } catch (const WrongOutput& error) {
    throw WrongOutput(std::string("portable tier: ") + error.what());
  }
  expected_ = std::move(found);
  return expected_;
}

void RowsWorkload::compare_bound(const void* output, bool f32, bool peer) const {
  const int64_t stride = std::max<int64_t>(1, elements() / most_compared()) | 1;  // odd: no column is always left out
  for (int64_t i = 0; i < elements(); i += stride) {
    const double got = f32 ? static_cast<const float*>(output)[i] : bf16_at(output, i);
    const Exact want = exact(i, peer);
    if (!(std::fabs(got - want.value) <= want.bound)) {
      throw WrongOutput(fmt::format("wrong output: element {} = {}, exact {}, bound {}", i, got, want.value, want.bound));
    }
  }
}

Verification RowsWorkload::compare(const void* output, size_t bytes, bool f32, const std::string& how) {
  const size_t whole = parts()[output_part()].bytes;
  if (how == "bits") {
    if (bytes != whole) throw std::runtime_error(fmt::format("the output has {} bytes, {} expected", bytes, whole));
    const std::vector<uint8_t>& want = expected();
    const auto* got = static_cast<const uint8_t*>(output);
    const auto [at, other] = std::mismatch(want.begin(), want.end(), got);
    if (at != want.end()) {
      throw WrongOutput(fmt::format("wrong output: byte {} = {:#04x}, expected {:#04x}", at - want.begin(), *other, *at));
    }
    return {true,
            fmt::format("bit-equal to the portable tier, all {} bytes; that one within the bound of double precision", bytes)};
  }
  if (how != "bound") throw std::runtime_error("unknown comparison \"" + how + "\"");
  const auto wanted = static_cast<size_t>(elements()) * (f32 ? 4 : 2);
  if (bytes != wanted) throw std::runtime_error(fmt::format("the output has {} bytes, {} expected", bytes, wanted));
  compare_bound(output, f32, true);
  return {true, fmt::format("within the bound of bf16 steps, up to {} elements", std::min(elements(), most_compared()))};
}

void RowsWorkload::fill_activations(size_t part, int64_t rows, int64_t width, uint64_t salt) const {
  const Generator g{1, width, 1, the_case().shape.seed + salt};
  auto* out = first<uint16_t>(part);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i) out[row * width + i] = g.activation(row, i);
  }
}

void RowsWorkload::fill_activations_f32(size_t part, int64_t rows, int64_t width, uint64_t salt) const {
  const Generator g{1, width, 1, the_case().shape.seed + salt};
  auto* out = first<float>(part);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < width; ++i) {
      out[row * width + i] = bf16_to_float(g.activation(row, i)) * (1.0F + static_cast<float>(i % 251) * 0x1p-16F);
    }
  }
}

void write_inputs(const Workload& workload, const Workload::FileWriter& file) {
  for (size_t part = 0; part < workload.parts().size(); ++part) {
    const Part& p = workload.parts()[part];
    if (part != workload.output_part()) file(p.name.c_str(), workload.data(workload.copy(0), part), p.bytes);
  }
}

}  // namespace omnibench
