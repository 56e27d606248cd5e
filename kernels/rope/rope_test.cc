// SPDX-License-Identifier: Apache-2.0
// RoPE tables against goldens and quadruple-checked values, rotations against the scalar formula, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/rope/angles.h"
#include "kernels/rope/rope_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"
#include "tools/common/safetensors.h"

namespace okl::test {
namespace {

std::vector<float> make_table(uint32_t rot, double theta, int64_t p0, int64_t p1) {
  const omni_rope_range range = {sizeof range, rot, theta, p0, p1};
  size_t bytes = 0;
  EXPECT_EQ(omni_rope_table_size(&range, &bytes), OMNI_OK) << omni_last_error();
  std::vector<float> table(bytes / 4, from_bits(0x7FC00000));
  EXPECT_EQ(omni_rope_table(&range, table.data(), bytes), OMNI_OK) << omni_last_error();
  return table;
}

OwnedPlan make_plan(uint16_t type, uint32_t heads, uint32_t head_dim, uint32_t rot, const char* kernel) {
  const omni_rope_query query = {sizeof query, type, 0, heads, head_dim, rot, kernel, nullptr};
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_rope_select(&query, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

struct Layer {
  const char* name;
  uint32_t rot;
  double theta;
};
constexpr Layer kLayers[] = {{"full_attention", 64, 5e6}, {"sliding_attention", 256, 1e4}};

std::string rope_golden() { return std::string(OMNI_TEST_DATA) + "/rope_golden.safetensors"; }

// PyTorch rounds one of the 160 powers the wrong way: 10000^(222/256) = 2942.72717 lies 0.486 ulp from the nearest float, and it
// took the one at 0.514. That is an ulp of the frequency, which positions multiply.
bool power_differs(const Layer& layer, size_t j) { return layer.rot == 256 && j == 111; }
double table_tolerance(const Layer& layer, size_t j, int32_t position) {
  const double ulp_of_angle = power_differs(layer, j) ? position / 2942.7 * 0x1p-23 : 0;
  return 0x1p-23 + ulp_of_angle;  // both sides round values that are good to an ulp
}

// PyTorch's fp32 tables to position 1,048,575.
TEST(RopeTable, Goldens) {
  const auto file = omni_files::SafetensorsFile::open(rope_golden());
  const auto positions = file.at("positions").as<int32_t>();
  ASSERT_EQ(positions.back(), 1048575);
  for (const Layer& layer : kLayers) {
    const auto cos = file.at(std::string(layer.name) + ".cos").as<float>(),
               sin = file.at(std::string(layer.name) + ".sin").as<float>();
    const size_t half = layer.rot / 2;
    for (size_t r = 0; r < positions.size(); ++r) {
      const std::vector<float> row = make_table(layer.rot, layer.theta, positions[r], positions[r] + 1);
      for (size_t j = 0; j < half; ++j) {
        const double tolerance = table_tolerance(layer, j, positions[r]);
        EXPECT_NEAR(row[j], cos[r * half + j], tolerance) << layer.name << " position " << positions[r] << " cos " << j;
        EXPECT_NEAR(row[half + j], sin[r * half + j], tolerance) << layer.name << " position " << positions[r] << " sin " << j;
      }
    }
  }
}

// The bits of one table, so that another machine's would be noticed: FNV-1a over the rows.
TEST(RopeTable, IsTheSameOnEveryMachine) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const Layer& layer : kLayers) {
    for (const int64_t p0 : {int64_t{0}, int64_t{1000}, int64_t{1048500}, OMNI_ROPE_MOST_POSITIONS - 64}) {
      for (const float value : make_table(layer.rot, layer.theta, p0, p0 + 64)) {
        hash = (hash ^ std::bit_cast<uint32_t>(value)) * 0x100000001B3;
      }
    }
  }
  EXPECT_EQ(hash, 0xCAB089EA54BBD782U) << std::hex << hash;
}

TEST(RopeTable, FollowsItsFormula) {
  for (const double theta : {1.5, 1e4, 5e6, 1e6, 1e12}) {
    for (const uint32_t rot : {2U, 8U, 64U, 100U, 256U}) {
      for (uint32_t j = 0; j < rot / 2; ++j) {
        const float exponent = static_cast<float>(2 * j) / static_cast<float>(rot);
        const float expected = 1.0F / static_cast<float>(std::pow(theta, static_cast<double>(exponent)));
        EXPECT_EQ(rope_frequency(theta, j, rot), expected) << theta << " " << j << "/" << rot;
      }
    }
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000000; ++i) {
    const uint64_t bits = random();
    const float angle = i % 4 == 0 ? static_cast<float>(bits % (1 << 24))
                                   : std::ldexp(static_cast<float>(bits >> 40), -static_cast<int>(bits % 40));
    const CosSin value = rope_cos_sin(angle);
    const double cos = std::cos(static_cast<double>(angle)), sin = std::sin(static_cast<double>(angle));
    ASSERT_EQ(value.cos, static_cast<float>(cos)) << std::hexfloat << angle;
    ASSERT_EQ(value.sin, static_cast<float>(sin)) << std::hexfloat << angle;
  }
  EXPECT_EQ(rope_cos_sin(0).cos, 1.0F);
  EXPECT_EQ(rope_cos_sin(0).sin, 0.0F);
}

// A row does not depend on the range in which it is made, so a table can grow.
TEST(RopeTable, RowsAreIndependent) {
  const std::vector<float> whole = make_table(36, 1e4, 100, 164);
  for (int64_t p = 100; p < 164; p += 7) {
    const int64_t end = std::min<int64_t>(p + 7, 164);
    const std::vector<float> part = make_table(36, 1e4, p, end);
    EXPECT_EQ(std::memcmp(part.data(), whole.data() + (p - 100) * 36, part.size() * 4), 0) << p;
  }
}

TEST(RopeTable, BadArguments) {
  const omni_rope_range good = {sizeof good, 64, 1e4, 0, 4};
  std::vector<float> table(257, 5.0F);
  size_t bytes = 0;
  const auto make = [&](const auto& change, size_t size = 1024) {
    omni_rope_range range = good;
    change(range);
    const omni_status status = omni_rope_table(&range, table.data(), size);
    EXPECT_EQ(table, std::vector<float>(257, 5.0F));
    return status;
  };
  EXPECT_EQ(omni_rope_table(nullptr, table.data(), 1024), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rope_table_size(&good, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rope_table_size(nullptr, &bytes), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rope_table(&good, nullptr, 1024), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rope_table(&good, reinterpret_cast<char*>(table.data()) + 2, 1024), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(make([](auto&) {}, 1023), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(make([](auto& r) { r.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(make([](auto& r) { r.rot = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(make([](auto& r) { r.rot = 63; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(make([](auto& r) { r.rot = 1U << 31; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(make([](auto& r) { r.theta = 1.0; }), OMNI_ERR_RANGE);
  EXPECT_EQ(make([](auto& r) { r.theta = std::nan(""); }), OMNI_ERR_RANGE);
  EXPECT_EQ(make([](auto& r) { r.theta = HUGE_VAL; }), OMNI_ERR_RANGE);
  EXPECT_EQ(make([](auto& r) { r.p0 = -1; }), OMNI_ERR_RANGE);
  EXPECT_EQ(make([](auto& r) { r.p0 = 5; }), OMNI_ERR_RANGE);
  EXPECT_EQ(make([](auto& r) { r.p1 = OMNI_ROPE_MOST_POSITIONS + 1; }), OMNI_ERR_RANGE);
  EXPECT_EQ(make([](auto& r) { r.p1 = 0; }), OMNI_OK);
  const omni_rope_range all = {sizeof all, 256, 1e4, 0, 1 << 20};
  EXPECT_EQ(omni_rope_table_size(&all, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, size_t{1} << 30);
}

class Rope : public KernelTest {};

struct Case {
  uint16_t type = OMNI_DTYPE_BF16;
  uint32_t m = 1, heads = 1, head_dim = 64, rot = 64;
  int64_t extra = 0;
  std::vector<float> x;
  std::vector<int32_t> positions;

  void fill(uint64_t seed) {
    std::mt19937_64 random(seed);
    x.resize(size_t{m} * heads * head_dim);
    for (float& value : x) value = random_value(random, -6, 3);
    positions.resize(m);
    for (int32_t& p : positions) p = 40 + static_cast<int32_t>(random() % 30);
  }
};

float rounded(float value, uint16_t type) {
  if (type == OMNI_DTYPE_BF16) return bf16_to_float(bf16_round_group(value));
  return std::isnan(value) ? from_bits(kF32NaN) : value;
}

std::vector<uint32_t> run(const Case& c, const char* kernel, const std::vector<float>& rows, Flush flush = Flush::kBack,
                          const omni_parallel* parallel = nullptr) {
  const int64_t width = int64_t{c.heads} * c.head_dim, ld = width + c.extra;
  GuardedBuffer x(static_cast<size_t>((c.m - 1) * ld + width) * bytes_of_type(c.type), flush, bytes_of_type(c.type), 0xFF);
  GuardedBuffer table = GuardedBuffer::copy_of(std::span<const float>(rows), flush);
  for (int64_t i = 0; i < c.m * width; ++i) put(x.data(), c.type, i / width * ld + i % width, c.x[static_cast<size_t>(i)]);
  table.make_read_only();
  const OwnedPlan plan = make_plan(c.type, c.heads, c.head_dim, c.rot, kernel);
  const omni_rope_args args = {sizeof args, c.m, x.data(), ld, c.positions.data(), table.data(), table.size(), 40, 70, parallel};
  EXPECT_EQ(omni_rope_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(x.intact());
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < c.m * width; ++i) bits.push_back(get_bits(x.data(), c.type, i / width * ld + i % width));
  for (int64_t r = 0; r + 1 < c.m; ++r) {
    for (int64_t i = width; i < ld; ++i)
      EXPECT_EQ(get_bits(x.data(), c.type, r * ld + i), c.type == OMNI_DTYPE_F32 ? ~0U : 0xFFFFU);
  }
  return bits;
}

std::vector<uint32_t> reference(const Case& c, const std::vector<float>& rows) {
  std::vector<uint32_t> bits;
  const size_t half = c.rot / 2;
  for (size_t r = 0; r < c.m; ++r) {
    const float* cos = rows.data() + static_cast<size_t>(c.positions[r] - 40) * c.rot;
    for (size_t head = 0; head < c.heads; ++head) {
      for (size_t i = 0; i < c.head_dim; ++i) {
        const auto at = [&](size_t k) {
          const float value = c.x[(r * c.heads + head) * c.head_dim + k];
          return c.type == OMNI_DTYPE_BF16 ? bf16_to_float(bf16_round_ieee(value)) : value;
        };
        float value = at(i);
        if (i < half) {
          const float left = at(i) * cos[i], right = at(i + half) * cos[half + i];
          value = rounded(left - right, c.type);
        } else if (i < c.rot) {
          const float left = at(i) * cos[i - half], right = at(i - half) * cos[i];
          value = rounded(left + right, c.type);
        }
        const uint32_t word = std::bit_cast<uint32_t>(value);
        bits.push_back(c.type == OMNI_DTYPE_F32 ? word : word >> 16);
      }
    }
  }
  return bits;
}

TEST_P(Rope, EveryShapeIsTheFormula) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint32_t head_dim : {2U, 3U, 16U, 24U, 64U, 80U, 100U, 128U, 256U}) {
      for (uint32_t rot = 2; rot <= head_dim; rot += rot < 80 ? 2 : 22) {
        Case c;
        c.type = type;
        c.m = 1 + rot % 3, c.heads = 1 + rot / 2 % 4, c.head_dim = head_dim, c.rot = rot, c.extra = rot % 5;
        c.fill(rot);
        const std::vector<float> rows = make_table(rot, 1e4, 40, 70);
        ASSERT_EQ(run(c, kernel(), rows, rot % 4 == 0 ? Flush::kBack : Flush::kFront), reference(c, rows))
            << head_dim << " " << rot;
      }
    }
  }
}

TEST_P(Rope, SpecialValuesStayWhereTheyAre) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    Case c;
    c.type = type;
    c.heads = 2, c.head_dim = 96, c.rot = 64;
    c.fill(1);
    c.x[3] = from_bits(0xFFC12300), c.x[40] = from_bits(0x7F800000), c.x[70] = from_bits(0xFF800000),
    c.x[100] = from_bits(0x00010000);
    c.x[90] = from_bits(0x7FC10000);  // not rotated: kept as it is
    const std::vector<float> rows = make_table(64, 1e4, 40, 70);
    std::vector<uint32_t> expected = reference(c, rows);
    ASSERT_EQ(run(c, kernel(), rows), expected);
  }
}

TEST_P(Rope, GoldensInFp32) {
  const auto file = omni_files::SafetensorsFile::open(rope_golden());
  const auto positions = file.at("positions").as<int32_t>();
  for (const Layer& layer : kLayers) {
    const auto expected = file.at(std::string(layer.name) + ".x_rot").as<float>();
    const auto cos = file.at(std::string(layer.name) + ".cos").as<float>(),
               sin = file.at(std::string(layer.name) + ".sin").as<float>();
    const size_t half = layer.rot / 2;
    for (const bool own_table : {true, false}) {
      auto x = file.at("x").as<float>();
      const OwnedPlan plan = make_plan(OMNI_DTYPE_F32, 2, 256, layer.rot, kernel());
      for (size_t r = 0; r < positions.size(); ++r) {
        std::vector<float> row = make_table(layer.rot, layer.theta, positions[r], positions[r] + 1);
        if (!own_table) {
          std::copy_n(cos.begin() + static_cast<int64_t>(r * half), half, row.begin());
          std::copy_n(sin.begin() + static_cast<int64_t>(r * half), half, row.begin() + static_cast<int64_t>(half));
        }
        const omni_rope_args args = {
            sizeof args, 1, &x[r * 512], 512, &positions[r], row.data(), row.size() * 4, positions[r], positions[r] + 1, nullptr};
        ASSERT_EQ(omni_rope_run(plan.get(), &args), OMNI_OK) << omni_last_error();
      }
      for (size_t i = 0; i < x.size(); ++i) {
        if (own_table) {
          const size_t in_head = i % 256, pair = in_head < layer.rot ? in_head % half : 0;
          const double tolerance = table_tolerance(layer, pair, positions[i / 512]);
          ASSERT_NEAR(x[i], expected[i], 4 * tolerance * (1 + std::fabs(expected[i]))) << i;
        } else {
          ASSERT_TRUE(same_bits(x[i], expected[i])) << layer.name << " " << i << ": with PyTorch's table its bits";
        }
      }
    }
  }
}

TEST_P(Rope, BatchesAndThreadsChangeNothing) {
  Case c;
  c.m = 120, c.heads = 10, c.head_dim = 256, c.rot = 64, c.extra = 512;
  c.fill(3);
  const std::vector<float> rows = make_table(64, 5e6, 40, 70);
  const std::vector<uint32_t> whole = run(c, kernel(), rows);
  for (const uint32_t threads : {1U, 3U}) {
    const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
    ASSERT_EQ(run(c, kernel(), rows, Flush::kFront, &parallel), whole);
  }
  ASSERT_EQ(whole, reference(c, rows));
}

TEST_P(Rope, KeepsTheCallersState) {
  float x[200] = {}, table[100] = {};
  const RopeRow argument = {x, table, table + 25, 2, 100, 25};
  EXPECT_EQ(AbiTrampoline::call(row().as<Op::kRope>().bf16, &argument), "");
  EXPECT_EQ(AbiTrampoline::call(row().as<Op::kRope>().f32, &argument), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, Rope, testing::ValuesIn(kernels_of(Op::kRope)), kernel_test_name);

TEST(RopeArguments, BadOnesAreRefusedAndTouchNothing) {
  const omni_rope_query query = {sizeof query, OMNI_DTYPE_BF16, 0, 2, 64, 32, nullptr, nullptr};
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_rope_query changed = query;
    change(changed);
    const omni_status status = omni_rope_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_rope_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rope_select(&query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 9; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.heads = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.rot = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.rot = 31; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.rot = 66; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.kernel = "rope"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "rope_avx2", q.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);

  const OwnedPlan plan = make_plan(OMNI_DTYPE_BF16, 2, 64, 32, nullptr);
  std::vector<uint16_t> x(300, 0x1234);
  const std::vector<float> table(32 * 4 + 1, 0.5F);
  const int32_t positions[3] = {10, 13, 0};
  const omni_rope_args good = {sizeof good, 2, x.data(), 128, positions, table.data(), 32 * 4 * 4, 10, 14, nullptr};
  const auto run_changed = [&](const auto& change) {
    omni_rope_args args = good;
    change(args);
    const omni_status status = omni_rope_run(plan.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(x, std::vector<uint16_t>(300, 0x1234));
    return status;
  };
  EXPECT_EQ(omni_rope_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rope_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.positions = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.table = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = 127; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run_changed([](auto& a) { a.x = static_cast<char*>(a.x) + 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.table = static_cast<const char*>(a.table) + 2; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { --a.table_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.p1 = 13; }), OMNI_ERR_RANGE);
  EXPECT_EQ(run_changed([](auto& a) { a.p0 = 11; }), OMNI_ERR_RANGE);
  EXPECT_EQ(run_changed([](auto& a) { a.p0 = -1; }), OMNI_ERR_RANGE);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 3; }), OMNI_ERR_RANGE);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 0, a.x = nullptr; }), OMNI_OK);
}

}  // namespace
}  // namespace okl::test
