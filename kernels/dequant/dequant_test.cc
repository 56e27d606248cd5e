// SPDX-License-Identifier: Apache-2.0
// omni_dequantize, every kernel by name, against a scalar loop written from the contract.
#include "omni/dequant.h"

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/format/bf16.h"
#include "kernels/format/tg4.h"
#include "omni/kernels.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/reference_formats.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

std::vector<std::string> dequant_kernels() {
  std::vector<std::string> names;
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    omni_kernel_info info = {};
    info.size = sizeof info;
    if (omni_kernel_get(i, &info) == OMNI_OK && std::string(info.op) == "dequant") names.emplace_back(info.name);
  }
  return names;
}

bool usable(const std::string& kernel) {
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    omni_kernel_info info = {};
    info.size = sizeof info;
    if (omni_kernel_get(i, &info) == OMNI_OK && kernel == info.name) return info.usable != 0;
  }
  return false;
}

// Values of every kind: ordinary, subnormal results, overflow, signed zeros, infinities, NaN.
enum class Values { kOrdinary, kTiny, kHuge, kSpecial };

float scale_or_zero(Values values, uint64_t h) {
  const uint32_t sign = static_cast<uint32_t>(h >> 63) << 31, mantissa = static_cast<uint32_t>(h >> 8) & 0x7FFFFF;
  const auto make = [&](uint32_t exponent) { return std::bit_cast<float>(sign | exponent << 23 | mantissa); };
  switch (values) {
    case Values::kOrdinary:
      return make(115 + static_cast<uint32_t>(h % 10));
    case Values::kTiny:
      return make(static_cast<uint32_t>(h % 4));  // exponent 0: subnormal
    case Values::kHuge:
      return make(250 + static_cast<uint32_t>(h % 5));
    case Values::kSpecial:
      return h % 5 == 0   ? make(255)
             : h % 5 == 1 ? std::bit_cast<float>(sign | 0x7F800000)
             : h % 5 == 2 ? std::bit_cast<float>(sign)
                          : make(120);
  }
  return 0;
}

struct Matrix {
  omni_layout layout = {};
  Codes codes;
  GuardedBuffer packed, scales;

  Matrix(int64_t n, int64_t k, uint32_t group, omni_dtype scale_type, Values values, Flush flush, uint64_t seed)
      : codes(Codes::synthetic(n, k, seed)), packed(0), scales(0) {
    EXPECT_EQ(omni_layout_init(&layout, OMNI_FORMAT_TG4, n, k, group, scale_type), OMNI_OK) << omni_last_error();
    const std::vector<uint8_t> bytes = reference_pack(OMNI_FORMAT_TG4, codes);
    packed = GuardedBuffer(bytes.size(), flush, 16);
    std::memcpy(packed.data(), bytes.data(), bytes.size());
    spoil_padding();
    size_t scale_bytes = 0;
    EXPECT_EQ(omni_scales_size(&layout, &scale_bytes), OMNI_OK);
    const size_t element = scale_type == OMNI_DTYPE_BF16 ? 2 : 4;
    scales = GuardedBuffer(scale_bytes, flush, element);
    for (size_t i = 0; i < scale_bytes / element; ++i) {
      const float value = scale_or_zero(values, splitmix64(seed * 77 + i));
      if (scale_type == OMNI_DTYPE_BF16) {
        scales.as<uint16_t>()[i] = static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
      } else {
        scales.as<float>()[i] = value;
      }
    }
    packed.make_read_only();
    scales.make_read_only();
  }

  // Padding channels and inputs may hold anything.
  void spoil_padding() {
    for (int64_t channel = 0; channel < tg4::padded_n(layout.n); ++channel) {
      for (int64_t input = 0; input < tg4::padded_k(layout.k); ++input) {
        if (channel < layout.n && input < layout.k) continue;
        const tg4::Position at = tg4::position(layout.n, layout.k, channel, input);
        packed.data()[at.byte] |= static_cast<uint8_t>(15 << at.shift);
      }
    }
  }

  float real(int64_t index) const {
    return layout.scale_type == OMNI_DTYPE_BF16 ? bf16_to_float(scales.as<uint16_t>()[index]) : scales.as<float>()[index];
  }
  float weight(int64_t channel, int64_t input) const {
    const int64_t at = 2 * (input / layout.group * layout.n + channel);
    const float value = std::fma(static_cast<float>(codes.at(channel, input) - 8), real(at), real(at + 1));
    return std::isnan(value) ? std::bit_cast<float>(0x7FC00000U) : value;
  }
};

struct Window {
  int64_t n0, n1, k0, k1;
};

class Dequant : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!usable(GetParam())) GTEST_SKIP() << GetParam() << " needs an ISA that this machine lacks";
  }

  void check(const Matrix& matrix, const Window& window, omni_dtype out_type, omni_order order, int64_t extra, Flush flush,
             const omni_parallel* parallel) {
    const int64_t channels = window.n1 - window.n0, inputs = window.k1 - window.k0;
    const int64_t rows = order == OMNI_ORDER_NK ? channels : inputs, width = order == OMNI_ORDER_NK ? inputs : channels;
    const int64_t element = out_type == OMNI_DTYPE_BF16 ? 2 : 4, ld = width + extra;
    const int64_t elements = rows == 0 || width == 0 ? 0 : (rows - 1) * ld + width;
    GuardedBuffer out(static_cast<size_t>(elements * element), flush, static_cast<size_t>(element));
    omni_dequant_args args = {};
    args.size = sizeof args;
    args.out_type = static_cast<uint16_t>(out_type);
    args.order = static_cast<uint16_t>(order);
    args.layout = matrix.layout;
    args.codes = matrix.packed.data();
    args.codes_bytes = matrix.packed.size();
    args.scales = matrix.scales.data();
    args.scales_bytes = matrix.scales.size();
    args.n0 = window.n0, args.n1 = window.n1, args.k0 = window.k0, args.k1 = window.k1;
    args.out = out.data();
    args.ld_out = ld;
    args.kernel = kernel_.c_str();
    args.parallel = parallel;
    const unsigned control = _mm_getcsr() & ~0x3FU;
    ASSERT_EQ(omni_dequantize(&args), OMNI_OK) << omni_last_error();
    ASSERT_EQ(_mm_getcsr() & ~0x3FU, control);
    ASSERT_TRUE(out.intact());
    for (int64_t at = 0; at < elements; ++at) {
      const int64_t row = at / ld, column = at % ld;
      uint32_t expected = out_type == OMNI_DTYPE_BF16 ? 0xA5A5 : 0xA5A5A5A5, found = 0;
      if (column < width) {
        const float value = order == OMNI_ORDER_NK ? matrix.weight(window.n0 + row, window.k0 + column)
                                                   : matrix.weight(window.n0 + column, window.k0 + row);
        expected = out_type == OMNI_DTYPE_BF16 ? bf16_round_ieee(value) : std::bit_cast<uint32_t>(value);
      }
      std::memcpy(&found, out.data() + at * element, static_cast<size_t>(element));
      ASSERT_EQ(found, expected) << kernel_ << ": row " << row << ", column " << column << ", order " << order << std::hex;
    }
  }

  void check_all_forms(const Matrix& matrix, const Window& window, int64_t extra, Flush flush, const omni_parallel* parallel) {
    for (const omni_dtype out_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const omni_order order : {OMNI_ORDER_NK, OMNI_ORDER_KN}) {
        check(matrix, window, out_type, order, extra, flush, parallel);
        if (HasFatalFailure()) return;
      }
    }
  }

  const std::string kernel_ = GetParam();
};

TEST_P(Dequant, WholeMatrices) {
  struct Case {
    int64_t n, k;
    uint32_t group;
  };
  const uint32_t three = 3;
  const omni_parallel runners[] = {backwards(1), backwards(2), fresh_threads(&three)};
  size_t turn = 0;
  for (const Case& c : {Case{1, 1, 32}, Case{16, 31, 32}, Case{17, 64, 64}, Case{48, 160, 64}, Case{49, 96, 128}, Case{63, 33, 33},
                        Case{64, 64, 128}, Case{64, 256, 32}, Case{64, 31, 31}, Case{65, 300, 300}, Case{80, 320, 256},
                        Case{96, 700, 700}, Case{112, 128, 64}, Case{128, 513, 128}, Case{130, 97, 32}, Case{192, 130, 128}}) {
    for (const omni_dtype scale_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const Values values : {Values::kOrdinary, Values::kTiny, Values::kHuge, Values::kSpecial}) {
        const Flush flush = turn % 2 == 0 ? Flush::kFront : Flush::kBack;
        const Matrix matrix(c.n, c.k, c.group, scale_type, values, flush, 5 + turn);
        check_all_forms(matrix, {0, c.n, 0, c.k}, turn % 3 == 0 ? 5 : 0, flush, &runners[turn % 3]);
        if (HasFatalFailure()) return;
        ++turn;
      }
    }
  }
}

TEST_P(Dequant, RandomWindows) {
  std::mt19937 random(42);
  const omni_parallel serial = backwards(1);
  for (int round = 0; round < 6; ++round) {
    const int64_t n = 40 + static_cast<int64_t>(random() % 200), k = 40 + static_cast<int64_t>(random() % 500);
    const uint32_t group = std::vector<uint32_t>{32, 64, 128, 256, static_cast<uint32_t>(k)}[random() % 5];
    const omni_dtype scale_type = random() % 2 == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    const Matrix matrix(n, k, group, scale_type, static_cast<Values>(random() % 4), Flush::kBack, random());
    for (int i = 0; i < 12; ++i) {
      Window window = {static_cast<int64_t>(random() % n), static_cast<int64_t>(random() % n), static_cast<int64_t>(random() % k),
                       static_cast<int64_t>(random() % k)};
      if (window.n0 > window.n1) std::swap(window.n0, window.n1);
      if (window.k0 > window.k1) std::swap(window.k0, window.k1);
      if (i % 3 == 0) window.n0 = window.n0 / 64 * 64, window.n1 = n;  // so that kernels get whole blocks, too
      check_all_forms(matrix, window, static_cast<int64_t>(random() % 4), i % 2 == 0 ? Flush::kFront : Flush::kBack, &serial);
      if (HasFatalFailure()) return;
    }
  }
}

// With N = 64 and one channel's scale s = value, z = +-0 or a value, every code: the roundings of bf16 in vector code.
TEST_P(Dequant, RoundsAsTheScalarConversion) {
  const std::vector<uint32_t> bits = {0x3E89CCD5, 0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x80000000, 0x3F808001,
                                      0x00218000, 0x007FFFFF, 0x80008000, 0x00008000, 0x00018000, 0xFF7F8000,
                                      0x7F800000, 0xFF800000, 0x7F800001, 0xFFC00000};
  const int64_t n = 64, k = 32;
  omni_layout layout;
  ASSERT_EQ(omni_layout_init(&layout, OMNI_FORMAT_TG4, n, k, 32, OMNI_DTYPE_F32), OMNI_OK);
  const std::vector<uint8_t> packed(static_cast<size_t>(tg4::packed_bytes(n, k)), tg4::kPadByte);  // weight 0 * s + z = z
  alignas(64) static uint8_t codes[64 * 32 / 2];
  std::memcpy(codes, packed.data(), packed.size());
  std::vector<float> scales(2 * n, 0.0F);
  for (int64_t c = 0; c < n; ++c)
    scales[static_cast<size_t>(2 * c + 1)] = std::bit_cast<float>(bits[static_cast<size_t>(c) % bits.size()]);
  for (const omni_order order : {OMNI_ORDER_NK, OMNI_ORDER_KN}) {
    std::vector<uint16_t> out(static_cast<size_t>(n * k));
    omni_dequant_args args = {};
    args.size = sizeof args;
    args.out_type = OMNI_DTYPE_BF16;
    args.order = static_cast<uint16_t>(order);
    args.layout = layout;
    args.codes = codes;
    args.codes_bytes = sizeof codes;
    args.scales = scales.data();
    args.scales_bytes = scales.size() * 4;
    args.n1 = n, args.k1 = k;
    args.out = out.data();
    args.ld_out = order == OMNI_ORDER_NK ? k : n;
    args.kernel = kernel_.c_str();
    ASSERT_EQ(omni_dequantize(&args), OMNI_OK) << omni_last_error();
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t i = 0; i < k; ++i) {
        // 0 * 0 + -0 is +0.
        const float value = std::fma(0.0F, 0.0F, scales[static_cast<size_t>(2 * c + 1)]);
        EXPECT_EQ(out[static_cast<size_t>(order == OMNI_ORDER_NK ? c * k + i : i * n + c)], bf16_round_ieee(value)) << c;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Dequant, testing::ValuesIn(dequant_kernels()), [](const auto& info) { return info.param; });

TEST(DequantArguments, BadOnesAreRefusedAndTouchNothing) {
  const int64_t n = 80, k = 96;
  const Matrix matrix(n, k, 64, OMNI_DTYPE_BF16, Values::kOrdinary, Flush::kBack, 3);
  std::vector<uint16_t> out(static_cast<size_t>(n * k), 0x1234);
  omni_dequant_args good = {};
  good.size = sizeof good;
  good.out_type = OMNI_DTYPE_BF16;
  good.layout = matrix.layout;
  good.codes = matrix.packed.data();
  good.codes_bytes = matrix.packed.size();
  good.scales = matrix.scales.data();
  good.scales_bytes = matrix.scales.size();
  good.n1 = n, good.k1 = k;
  good.out = out.data();
  good.ld_out = k;
  const auto status = [&](const auto& change) {
    omni_dequant_args args = good;
    change(args);
    const omni_status result = omni_dequantize(&args);
    EXPECT_TRUE(result == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](uint16_t value) { return value == 0x1234; }));
    return result;
  };
  EXPECT_EQ(omni_dequantize(nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(status([](auto& a) { a.layout.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(status([](auto& a) { a.layout.format = OMNI_FORMAT_TORCH_AVX2; }), OMNI_ERR_LAYOUT);
  EXPECT_EQ(status([](auto& a) { a.layout.version = 9; }), OMNI_ERR_LAYOUT);
  EXPECT_EQ(status([](auto& a) { a.layout.group = 48; }), OMNI_ERR_GROUP);
  EXPECT_EQ(status([](auto& a) { a.layout.group = 0; }), OMNI_ERR_GROUP);
  EXPECT_EQ(status([](auto& a) { a.out_type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(status([](auto& a) { a.order = 2; }), OMNI_ERR_TYPE);
  EXPECT_EQ(status([](auto& a) { a.n0 = -1; }), OMNI_ERR_RANGE);
  EXPECT_EQ(status([](auto& a) { a.n1 = 81; }), OMNI_ERR_RANGE);
  EXPECT_EQ(status([](auto& a) { a.k0 = 50, a.k1 = 49; }), OMNI_ERR_RANGE);
  EXPECT_EQ(status([](auto& a) { a.k1 = INT64_MAX; }), OMNI_ERR_RANGE);
  EXPECT_EQ(status([](auto& a) { a.ld_out = 95; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(status([](auto& a) { a.ld_out = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(status([](auto& a) { a.codes = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.scales = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.out = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { --a.codes_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(status([](auto& a) { --a.scales_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(status([](auto& a) { a.codes = static_cast<const uint8_t*>(a.codes) - 8; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([](auto& a) { a.scales = static_cast<const uint8_t*>(a.scales) - 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([](auto& a) { a.out = static_cast<uint8_t*>(a.out) + 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([](auto& a) { a.kernel = "dequant_tg4"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(status([](auto& a) { a.kernel = "pack_tg4_64x16_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(status([](auto& a) { a.kernel = "dequant_tg4_64x16_twinavx2", a.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(status([](auto& a) { a.max_isa = "avx3"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(status([](auto& a) { a.n0 = a.n1, a.codes = nullptr, a.scales = nullptr, a.out = nullptr; }), OMNI_OK);
  EXPECT_EQ(status([](auto& a) { a.k0 = a.k1; }), OMNI_OK);
}

}  // namespace
}  // namespace okl::test
