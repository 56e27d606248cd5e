// SPDX-License-Identifier: Apache-2.0
// 4-bit weights with real zeros (tg4), bf16 activations.
#include "bench/ops/w4a16.h"

#include <cstring>

#include "bench/generator.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

LinearForm form_of(const Case& c) {
  LinearForm form;
  if (c.variant == "torch") form.numerics = OMNI_NUMERICS_TORCH;
  if (c.variant == "fast") form.numerics = OMNI_NUMERICS_FAST;
  return form;
}

class W4A16 final : public LinearWorkload {
 public:
  W4A16(const Case& c, const Pool& pool) : LinearWorkload(c, pool, form_of(c)), generator_{c.n(), c.k(), c.group, c.shape.seed} {
    make_copies([&] {
      pack_tg4(generator_, pool, first<uint8_t>(kCodes), parts()[kCodes].bytes);
      const std::vector<uint16_t> scales = generator_.scales();
      std::memcpy(first<uint8_t>(kScales), scales.data(), parts()[kScales].bytes);
      fill_x();
    });
  }

  [[nodiscard]] double weight(int64_t n, int64_t k) const override {
    uint16_t s = 0;
    uint16_t z = 0;
    generator_.scale_zero(k / generator_.group, n, &s, &z);
    return static_cast<double>(generator_.code(n, k) - 8) * bf16_to_float(s) + bf16_to_float(z);
  }
  [[nodiscard]] uint16_t weight_bf16(int64_t n, int64_t k) const override { return scalar_dequant(generator_, n, k); }

  void write_operands(const FileWriter& file) override {
    std::vector<uint8_t> codes(static_cast<size_t>(generator_.n * generator_.k));
    pool().run(generator_.n, [&](int64_t n) { generator_.codes(n, n + 1, codes.data() + n * generator_.k); });
    file("codes", codes.data(), codes.size());
    file("scales", first<uint8_t>(kScales), parts()[kScales].bytes);
    file("x", x(), parts()[kX].bytes);
  }

  // AMX multiplies weights that were rounded to bf16: a bound, no bits.
  [[nodiscard]] std::string own_comparison() const override { return the_case().variant == "fast" ? "bf16-weights" : "bits"; }

 protected:
  [[nodiscard]] float scalar(omni_numerics numerics, int64_t m, int64_t n) const override {
    return scalar_gemv(generator_, numerics, static_cast<const uint16_t*>(x()) + m * generator_.k, n);
  }
  [[nodiscard]] omni_numerics numerics_of(const std::string& how) const override {
    if (how == "group") return OMNI_NUMERICS_GROUP;
    return how == "torch" ? OMNI_NUMERICS_TORCH : LinearWorkload::numerics_of(how);
  }

 private:
  Generator generator_;
};

}  // namespace

void pack_tg4(const Generator& generator, const Pool& pool, uint8_t* packed, size_t packed_bytes) {
  const int64_t n = generator.n;
  const int64_t k = generator.k;
  const Block codes(static_cast<size_t>(n * k));
  fill_codes(generator, pool, codes.data());
  omni_repack_args args{};
  args.size = sizeof args;
  args.source_format = OMNI_FORMAT_CODES_U8;
  args.destination_format = OMNI_FORMAT_TG4;
  args.n = n;
  args.k = k;
  args.source = codes.data();
  args.source_bytes = static_cast<size_t>(n * k);
  args.destination = packed;
  args.destination_bytes = packed_bytes;
  args.parallel = pool.parallel();
  check(omni_repack(&args), "omni_repack");
}

void fill_codes(const Generator& generator, const Pool& pool, uint8_t* codes) {
  constexpr int64_t kRows = 64;
  pool.run((generator.n + kRows - 1) / kRows, [&](int64_t part) {
    const int64_t n0 = part * kRows;
    generator.codes(n0, std::min(generator.n, n0 + kRows), codes + n0 * generator.k);
  });
}

std::vector<Part> w4a16_parts(const Case& c) { return linear_parts(c, form_of(c)); }

std::unique_ptr<Workload> make_w4a16(const Case& c, const Pool& pool) { return std::make_unique<W4A16>(c, pool); }

}  // namespace omnibench
