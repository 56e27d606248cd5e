// SPDX-License-Identifier: Apache-2.0
// Integer weights without zeros: 4 bits (w4s) or 8 (w8s), with bf16 x quantised on the way in (class exact) or as it is (W8A16).
#include "bench/ops/integer.h"

#include <algorithm>
#include <stdexcept>

#include "bench/generator.h"
#include "bench/ops/scalar.h"
#include "bench/ops/w4a16.h"

namespace omnibench {
namespace {

bool four_bits(const Case& c) { return c.op == "w4a8"; }

LinearForm form_of(const Case& c) {
  LinearForm form;
  form.format = four_bits(c) ? OMNI_FORMAT_W4S : OMNI_FORMAT_W8S;
  form.numerics = c.op == "w8a16" ? OMNI_NUMERICS_GROUP : OMNI_NUMERICS_EXACT;
  return form;
}

class Integer final : public LinearWorkload {
 public:
  Integer(const Case& c, const Pool& pool)
      : LinearWorkload(c, pool, form_of(c)), generator_{c.n(), c.k(), c.group, c.shape.seed}, four_(four_bits(c)) {
    make_copies([&] {
      pack();
      for (int64_t g = 0; g * generator_.group < generator_.k; ++g) {
        for (int64_t n = 0; n < generator_.n; ++n) first<uint16_t>(kScales)[g * generator_.n + n] = scale_bits(g, n);
      }
      fill_x();
    });
  }

  [[nodiscard]] double weight(int64_t n, int64_t k) const override {
    return static_cast<double>(code(n, k)) * bf16_to_float(scale_bits(k / generator_.group, n));
  }
  [[nodiscard]] uint16_t weight_bf16(int64_t n, int64_t k) const override {
    return float_to_bf16(static_cast<float>(weight(n, k)));  // 8 bits times 8 bits: exact in fp32
  }

  /// codes: uint8 0..15 with zero point 8, or int8; scales bf16 [ceil(K/g)][N].
  void write_operands(const FileWriter& file) override {
    const std::vector<uint8_t> codes = source();
    file("codes", codes.data(), codes.size());
    file("scales", first<uint8_t>(kScales), parts()[kScales].bytes);
    file("x", x(), parts()[kX].bytes);
  }

  std::unique_ptr<Arm> peer(const std::string& arm, std::string name) override {
    return arm == "onednn" ? make_onednn_int8_arm(std::move(name), *this) : Workload::peer(arm, std::move(name));
  }

 protected:
  [[nodiscard]] float scalar(omni_numerics numerics, int64_t m, int64_t n) const override {
    const uint16_t* row = static_cast<const uint16_t*>(x()) + m * generator_.k;
    const auto group = static_cast<int64_t>(generator_.group);
    const auto scale = [&](int64_t g) { return bf16_to_float(scale_bits(g, n)); };
    if (numerics == OMNI_NUMERICS_GROUP) {
      return scalar_group(
          row, generator_.k, group, [&](int64_t k) { return static_cast<float>(code(n, k)); }, scale);
    }
    const int64_t block = four_ ? std::min<int64_t>(group, 128) : group;
    return scalar_exact(
        scalar_quantize(row, generator_.k), block, [&](int64_t k) { return code(n, k); },
        [&](int64_t k) { return scale(k / group); });
  }

 private:
  /// The integer that the scale multiplies.
  [[nodiscard]] int code(int64_t n, int64_t k) const {
    if (four_) return generator_.code(n, k) - 8;
    const uint64_t h = splitmix64(generator_.seed + static_cast<uint64_t>(n * generator_.k + k));
    return std::max(static_cast<int8_t>(h >> 56), int8_t{-127});
  }
  [[nodiscard]] uint16_t scale_bits(int64_t g, int64_t n) const {
    uint16_t scale = 0;
    uint16_t zero = 0;
    generator_.scale_zero(g, n, &scale, &zero);
    return scale;
  }

  [[nodiscard]] std::vector<uint8_t> source() const {
    std::vector<uint8_t> codes(static_cast<size_t>(generator_.n * generator_.k));
    if (four_) {
      fill_codes(generator_, pool(), codes.data());
      return codes;
    }
    pool().run(generator_.n, [&](int64_t n) {
      for (int64_t k = 0; k < generator_.k; ++k) codes[n * generator_.k + k] = static_cast<uint8_t>(code(n, k));
    });
    return codes;
  }

  void pack() {
    const std::vector<uint8_t> codes = source();
    omni_repack_args args{};
    args.size = sizeof args;
    args.source_format = static_cast<uint16_t>(four_ ? OMNI_FORMAT_CODES_U8 : OMNI_FORMAT_CODES_S8);
    args.destination_format = static_cast<uint16_t>(form().format);
    args.n = generator_.n;
    args.k = generator_.k;
    args.source = codes.data();
    args.source_bytes = codes.size();
    args.destination = first<uint8_t>(kCodes);
    args.destination_bytes = parts()[kCodes].bytes;
    args.parallel = pool().parallel();
    check(omni_repack(&args), "omni_repack");
  }

  Generator generator_;
  bool four_;
};

}  // namespace

std::vector<Part> integer_parts(const Case& c) { return linear_parts(c, form_of(c)); }

std::unique_ptr<Workload> make_integer(const Case& c, const Pool& pool) { return std::make_unique<Integer>(c, pool); }

}  // namespace omnibench
