// SPDX-License-Identifier: Apache-2.0
// Dense weights. Variants: bf16 (bf16 weights and x), f32x (bf16 weights, fp32 x), f32 (both fp32), fast (bf16 through AMX).
#include "bench/ops/dense.h"

#include <cstring>

#include "bench/generator.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

bool wide_weights(const Case& c) { return c.variant == "f32"; }

LinearForm form_of(const Case& c) {
  LinearForm form;
  form.numerics = c.variant == "fast" ? OMNI_NUMERICS_FAST : OMNI_NUMERICS_DENSE;
  form.format = wide_weights(c) ? OMNI_FORMAT_W32 : OMNI_FORMAT_W16;
  form.x_type = c.variant == "f32" || c.variant == "f32x" ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
  form.scale_type = OMNI_DTYPE_NONE;
  if (!wide_weights(c)) form.flags = OMNI_LAYOUT_SCRUBBED;
  return form;
}

class Dense final : public LinearWorkload {
 public:
  Dense(const Case& c, const Pool& pool) : LinearWorkload(c, pool, form_of(c)), wide_(wide_weights(c)) {
    make_copies([&] {
      pack();
      fill_x();
    });
  }

  [[nodiscard]] double weight(int64_t n, int64_t k) const override { return value(n, k); }
  [[nodiscard]] uint16_t weight_bf16(int64_t n, int64_t k) const override { return float_to_bf16(value(n, k)); }

  /// weights: [N][K] bf16, or fp32 in variant f32.
  void write_operands(const FileWriter& file) override {
    const Block rows = source();
    file("weights", rows.data(), source_bytes());
    file("x", x(), parts()[kX].bytes);
  }

  [[nodiscard]] std::string own_comparison() const override { return the_case().variant == "fast" ? "accumulation" : "bits"; }

 protected:
  [[nodiscard]] float scalar(omni_numerics /*numerics*/, int64_t m, int64_t n) const override {
    const bool pairs = !wide_ && form().x_type == OMNI_DTYPE_BF16;
    return scalar_dense(
        the_case().k(), pairs, [&](int64_t k) { return static_cast<float>(x_value(m, k)); },
        [&](int64_t k) { return value(n, k); });
  }

 private:
  /// In 2^-9..2^-5, so that nothing is near 2^-56, where products of bf16 are scrubbed.
  [[nodiscard]] float value(int64_t n, int64_t k) const {
    const uint64_t h = splitmix64(the_case().shape.seed + static_cast<uint64_t>(n * the_case().k() + k));
    const auto high = static_cast<uint32_t>((h >> 63) << 15 | (118 + (h >> 50 & 3)) << 7 | (h >> 56 & 0x7f));
    const uint32_t bits = high << 16 | (wide_ ? static_cast<uint32_t>(h & 0xffff) : 0);
    float out = 0;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }

  [[nodiscard]] size_t source_bytes() const { return static_cast<size_t>(the_case().n() * the_case().k()) * (wide_ ? 4 : 2); }

  [[nodiscard]] Block source() const {
    Block rows(source_bytes());
    const int64_t k = the_case().k();
    pool().run(the_case().n(), [&](int64_t n) {
      for (int64_t i = 0; i < k; ++i) {
        const float w = value(n, i);
        if (wide_) {
          reinterpret_cast<float*>(rows.data())[n * k + i] = w;
        } else {
          reinterpret_cast<uint16_t*>(rows.data())[n * k + i] = float_to_bf16(w);
        }
      }
    });
    return rows;
  }

  void pack() {
    const Block rows = source();
    omni_pack_dense_args args{};
    args.size = sizeof args;
    args.source_type = static_cast<uint16_t>(wide_ ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    args.layout = layout();
    args.source = rows.data();
    args.source_bytes = source_bytes();
    args.out = first<uint8_t>(kCodes);
    args.out_bytes = parts()[kCodes].bytes;
    args.parallel = pool().parallel();
    check(omni_pack_dense(&args, nullptr), "omni_pack_dense");
  }

  bool wide_;
};

}  // namespace

std::vector<Part> dense_parts(const Case& c) { return linear_parts(c, form_of(c)); }

std::unique_ptr<Workload> make_dense(const Case& c, const Pool& pool) { return std::make_unique<Dense>(c, pool); }

}  // namespace omnibench
