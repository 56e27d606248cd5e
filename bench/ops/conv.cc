// SPDX-License-Identifier: Apache-2.0
// Dense convolution over rows of time, M frames in a call. Variants: f32 (fp32 weights and rows), f32x (bf16 weights, fp32 rows),
// bf16 (both bf16). The result is fp32, which is what activations between convolutions are. A transposed convolution is one with
// more outputs: its shapes say n = stride * outputs.
#include "bench/ops/conv.h"

#include <cstring>

#include "bench/generator.h"
#include "bench/ops/rows.h"

namespace omnibench {
namespace {

enum ConvPart : size_t { kWeights, kBias, kX, kY };

/// What the sizes of a case are called here.
struct Sizes {
  int64_t n, inputs, taps, dilation, m;

  explicit Sizes(const Case& c) : n(c.n()), inputs(c.k()), taps(c.size(2)), dilation(c.size(3)), m(c.m * c.size(4)) {}
  [[nodiscard]] int64_t k() const { return taps * inputs; }
  [[nodiscard]] int64_t input_rows() const { return m + (taps - 1) * dilation; }
};

bool wide_weights(const Case& c) { return c.variant == "f32"; }
bool wide_rows(const Case& c) { return c.variant != "bf16"; }

omni_layout layout_of(const Case& c) {
  const Sizes sizes(c);
  omni_layout layout{};
  check(omni_layout_init(&layout, wide_weights(c) ? OMNI_FORMAT_W32 : OMNI_FORMAT_W16, sizes.n, sizes.k(),
                         static_cast<uint32_t>(sizes.k()), OMNI_DTYPE_NONE),
        "omni_layout_init");
  if (!wide_weights(c)) layout.flags |= OMNI_LAYOUT_SCRUBBED;
  return layout;
}

class ConvRunner final : public Runner {
 public:
  ConvRunner(const Workload& w, const OurChoice& choice) : w_(w), plan_(nullptr, omni_plan_destroy) {
    const Case& c = w.the_case();
    const Sizes sizes(c);
    omni_conv1d_query query{};
    query.size = sizeof query;
    query.x_type = static_cast<uint16_t>(wide_rows(c) ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    query.y_type = OMNI_DTYPE_F32;
    query.epilogue = OMNI_EPILOGUE_BIAS;
    query.inputs = static_cast<uint32_t>(sizes.inputs);
    query.taps = static_cast<uint32_t>(sizes.taps);
    query.dilation = static_cast<uint32_t>(sizes.dilation);
    query.stride = 1;
    query.max_m = static_cast<uint32_t>(sizes.m);
    query.max_threads = w.pool().threads();
    query.weights = layout_of(c);
    query.kernel = choice.kernel_or_null();
    query.max_isa = choice.max_isa_or_null();
    omni_plan* plan = nullptr;
    const omni_status status = omni_conv1d_select(&query, &plan);
    plan_ = take_plan(status, plan, "omni_conv1d_select");
    describe(plan, false, *this);
    size_t bytes = 0;
    check(omni_conv1d_workspace_size(plan, query.max_m, &bytes), "omni_conv1d_workspace_size");
    workspace_ = Block(bytes);
    args_.size = sizeof args_;
    args_.m = query.max_m;
    args_.ldx = sizes.inputs;
    args_.ldy = sizes.n;
    args_.codes_bytes = w.parts()[kWeights].bytes;
    args_.workspace = workspace_.data();
    args_.workspace_bytes = bytes;
    args_.parallel = w.pool().parallel();
  }

  void run(const uint8_t* copy) override {
    args_.codes = w_.data(copy, kWeights);
    args_.bias = reinterpret_cast<const float*>(w_.data(copy, kBias));
    args_.x = w_.data(copy, kX);
    args_.y = w_.data(copy, kY);
    const omni_status status = omni_conv1d_run(plan_.get(), &args_);
    if (status != OMNI_OK) check(status, "omni_conv1d_run");
  }

 private:
  const Workload& w_;
  Plan plan_;
  Block workspace_;
  omni_conv1d_args args_{};
};

class Conv final : public RowsWorkload {
 public:
  Conv(const Case& c, const Pool& pool) : RowsWorkload(c, pool), sizes_(c) {
    make_copies([&] {
      pack();
      for (int64_t o = 0; o < sizes_.n; ++o) first<float>(kBias)[o] = weight(o, 0);
      fill_x();
      spoil_output();
    });
  }

  std::unique_ptr<Runner> runner(const OurChoice& choice) override { return std::make_unique<ConvRunner>(*this, choice); }
  /// weights: [N][taps][inputs] in the type of the variant.
  void write_operands(const FileWriter& file) override {
    const Block rows = source();
    file("weights", rows.data(), rows.bytes());
    file("bias", first<uint8_t>(kBias), parts()[kBias].bytes);
    file("x", first<uint8_t>(kX), parts()[kX].bytes);
  }

 protected:
  [[nodiscard]] int64_t elements() const override { return sizes_.m * sizes_.n; }
  [[nodiscard]] bool output_f32() const override { return true; }
  [[nodiscard]] int64_t most_compared() const override { return 1 << 10; }
  [[nodiscard]] Exact exact(int64_t index, bool peer) const override {
    const int64_t row = index / sizes_.n, o = index % sizes_.n;
    double sum = weight(o, 0), magnitude = std::fabs(sum);
    for (int64_t i = 0; i < sizes_.k(); ++i) {
      const double product =
          double{weight(o, i)} * x((row + i / sizes_.inputs * sizes_.dilation) * sizes_.inputs + i % sizes_.inputs);
      sum += product;
      magnitude += std::fabs(product);
    }
    // fp32 accumulation on either side adds at most K * 2^-24 of the magnitudes.
    const double stored = peer && !wide_rows(the_case()) ? bf16_bound(sum, 2) : 0;
    return {sum, stored + 2 * static_cast<double>(sizes_.k() + 1) * 0x1p-24 * magnitude};
  }

 private:
  /// In 2^-9..2^-5, so that nothing is near 2^-56, where products of bf16 are scrubbed.
  [[nodiscard]] float weight(int64_t o, int64_t i) const {
    const uint64_t h = splitmix64(the_case().shape.seed + static_cast<uint64_t>(o * sizes_.k() + i));
    const auto high = static_cast<uint32_t>((h >> 63) << 15 | (118 + (h >> 50 & 3)) << 7 | (h >> 56 & 0x7f));
    const uint32_t bits = high << 16 | (wide_weights(the_case()) ? static_cast<uint32_t>(h & 0xffff) : 0);
    float out = 0;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  [[nodiscard]] double x(int64_t index) const {
    return wide_rows(the_case()) ? first<float>(kX)[index] : bf16_at(first<uint8_t>(kX), index);
  }

  void fill_x() {
    if (!wide_rows(the_case())) return fill_activations(kX, sizes_.input_rows(), sizes_.inputs, 0);
    const Generator g{1, sizes_.inputs, 1, the_case().shape.seed};
    for (int64_t row = 0; row < sizes_.input_rows(); ++row) {
      for (int64_t i = 0; i < sizes_.inputs; ++i) {
        // 16 more bits of mantissa, so that a kernel that rounds x to bf16 is found out.
        const uint64_t more =
            splitmix64(the_case().shape.seed + (uint64_t{1} << 42) + static_cast<uint64_t>(row * sizes_.inputs + i));
        first<uint32_t>(kX)[row * sizes_.inputs + i] = uint32_t{g.activation(row, i)} << 16 | static_cast<uint32_t>(more & 0xffff);
      }
    }
  }

  [[nodiscard]] Block source() const {
    const bool wide = wide_weights(the_case());
    const int64_t k = sizes_.k();
    Block rows(static_cast<size_t>(sizes_.n * k) * (wide ? 4 : 2));
    pool().run(sizes_.n, [&](int64_t o) {
      for (int64_t i = 0; i < k; ++i) {
        if (wide) {
          reinterpret_cast<float*>(rows.data())[o * k + i] = weight(o, i);
        } else {
          reinterpret_cast<uint16_t*>(rows.data())[o * k + i] = float_to_bf16(weight(o, i));
        }
      }
    });
    return rows;
  }

  void pack() {
    const Block rows = source();
    omni_pack_dense_args args{};
    args.size = sizeof args;
    args.source_type = static_cast<uint16_t>(wide_weights(the_case()) ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    args.layout = layout_of(the_case());
    args.source = rows.data();
    args.source_bytes = rows.bytes();
    args.out = first<uint8_t>(kWeights);
    args.out_bytes = parts()[kWeights].bytes;
    args.parallel = pool().parallel();
    check(omni_pack_dense(&args, nullptr), "omni_pack_dense");
  }

  const Sizes sizes_;
};

}  // namespace

std::vector<Part> conv1d_parts(const Case& c) {
  const Sizes sizes(c);
  const omni_layout layout = layout_of(c);
  size_t packed = 0;
  check(omni_packed_size(&layout, &packed), "omni_packed_size");
  const size_t element = wide_rows(c) ? 4 : 2;
  return {{"weights", packed, true},
          {"bias", 4 * static_cast<size_t>(sizes.n), true},
          {"x", element * static_cast<size_t>(sizes.input_rows() * sizes.inputs), false},
          {"y", 4 * static_cast<size_t>(sizes.m * sizes.n), false}};
}

double conv1d_operations(const Case& c) {
  const Sizes sizes(c);
  return 2.0 * static_cast<double>(sizes.m) * static_cast<double>(sizes.n) * static_cast<double>(sizes.k());
}

std::unique_ptr<Workload> make_conv1d(const Case& c, const Pool& pool) { return std::make_unique<Conv>(c, pool); }

std::vector<Shape> codec_convolutions() {
  std::vector<Shape> shapes = {
      {"res384", {384, 384, 7, 1, 160}},     {"pre_conv", {1024, 512, 3, 1, 1}},     {"up1", {2048, 1024, 1, 1, 1}},
      {"up2", {2048, 1024, 1, 1, 2}},        {"decoder0", {1536, 1024, 7, 1, 4}},    {"tconv768", {8 * 768, 1536, 2, 1, 4}},
      {"res768", {768, 768, 7, 1, 32}},      {"res768d3", {768, 768, 7, 3, 32}},     {"res768d9", {768, 768, 7, 9, 32}},
      {"mix768", {768, 768, 1, 1, 32}},      {"tconv384", {5 * 384, 768, 2, 1, 32}}, {"res384", {384, 384, 7, 1, 160}},
      {"res384d9", {384, 384, 7, 9, 160}},   {"mix384", {384, 384, 1, 1, 160}},      {"tconv192", {4 * 192, 384, 2, 1, 160}},
      {"res192", {192, 192, 7, 1, 640}},     {"res192d9", {192, 192, 7, 9, 640}},    {"mix192", {192, 192, 1, 1, 640}},
      {"tconv96", {3 * 96, 192, 2, 1, 640}}, {"res96", {96, 96, 7, 1, 1920}},        {"res96d9", {96, 96, 7, 9, 1920}},
      {"mix96", {96, 96, 1, 1, 1920}},       {"samples", {1, 96, 7, 1, 1920}}};
  return shapes;
}

}  // namespace omnibench
