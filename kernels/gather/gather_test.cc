// SPDX-License-Identifier: Apache-2.0
// Rows by id from every kind of table, against the values that were packed.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "kernels/format/bf16.h"
#include "omni/omni.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

enum class Source { kTg4, kW8s, kW16, kW32, kPlainBf16, kPlainF32 };
constexpr Source kSources[] = {Source::kTg4, Source::kW8s, Source::kW16, Source::kW32, Source::kPlainBf16, Source::kPlainF32};

struct Shape {
  Source source = Source::kTg4;
  int64_t n = 80, k = 96;
  uint32_t group = 32;
  omni_dtype scale_type = OMNI_DTYPE_BF16;
};

// A table packed by the library's own entries between guards, and its values as the formula has them.
class Table {
 public:
  Table(const Shape& shape_in, uint64_t seed) : shape(shape_in), random_(seed), values_(static_cast<size_t>(shape.n * shape.k)) {
    switch (shape.source) {
      case Source::kTg4:
        make_quantised(OMNI_FORMAT_TG4, OMNI_FORMAT_CODES_U8, 2);
        break;
      case Source::kW8s:
        make_quantised(OMNI_FORMAT_W8S, OMNI_FORMAT_CODES_S8, 1);
        break;
      default:
        make_dense();
    }
  }

  bool is_plain() const { return shape.source == Source::kPlainBf16 || shape.source == Source::kPlainF32; }
  omni_gather_query query(uint16_t out_type, float multiplier, const char* kernel) const {
    omni_gather_query q{};
    q.size = sizeof q;
    q.out_type = out_type;
    q.plain_type = !is_plain() ? OMNI_DTYPE_NONE : shape.source == Source::kPlainBf16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    q.table = layout;
    q.multiplier = multiplier;
    q.kernel = kernel;
    return q;
  }
  omni_gather_args args() const {
    omni_gather_args a{};
    a.size = sizeof a;
    a.id_bytes = 4;
    a.table = table.data();
    a.table_bytes = table.size();
    a.ld_table = ld;
    a.scales = scales.data();
    a.scales_bytes = scales.size();
    return a;
  }
  uint32_t expected(int64_t id, int64_t k, uint16_t out_type, float multiplier) const {
    const float value = values_[static_cast<size_t>(id * shape.k + k)] * multiplier;
    if (out_type == OMNI_DTYPE_BF16) return bf16_round_ieee(value);
    return std::isnan(value) ? kF32NaN : std::bit_cast<uint32_t>(value);
  }

  Shape shape;
  omni_layout layout{};
  GuardedBuffer table{0}, scales{0};
  int64_t ld = 0;

 private:
  void make_quantised(omni_format format, omni_format codes_format, int reals) {
    const bool tg4 = format == OMNI_FORMAT_TG4;
    ASSERT_EQ(omni_layout_init(&layout, format, shape.n, shape.k, shape.group, shape.scale_type), OMNI_OK) << omni_last_error();
    std::vector<uint8_t> codes(values_.size());
    for (uint8_t& code : codes) code = static_cast<uint8_t>(tg4 ? random_() & 15 : random_());
    size_t bytes = 0;
    ASSERT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK);
    table = GuardedBuffer(bytes, Flush::kBack, 16);
    omni_repack_args repack{};
    repack.size = sizeof repack;
    repack.source_format = codes_format;
    repack.destination_format = format;
    repack.n = shape.n;
    repack.k = shape.k;
    repack.source = codes.data();
    repack.source_bytes = codes.size();
    repack.destination = table.data();
    repack.destination_bytes = bytes;
    ASSERT_EQ(omni_repack(&repack), OMNI_OK) << omni_last_error();
    ASSERT_EQ(omni_scales_size(&layout, &bytes), OMNI_OK);
    scales = GuardedBuffer(bytes, Flush::kBack, 4);
    const int64_t groups = (shape.k + shape.group - 1) / shape.group;
    for (int64_t i = 0; i < groups * shape.n * reals; ++i) put(scales.data(), shape.scale_type, i, random_value(random_, -20, 3));
    for (int64_t row = 0; row < shape.n; ++row) {
      for (int64_t k = 0; k < shape.k; ++k) {
        const int64_t at = (k / shape.group * shape.n + row) * reals;
        const uint8_t code = codes[static_cast<size_t>(row * shape.k + k)];
        const float scale = get(scales.data(), shape.scale_type, at);
        values_[static_cast<size_t>(row * shape.k + k)] =
            tg4 ? std::fma(static_cast<float>(code) - 8.0F, scale, get(scales.data(), shape.scale_type, at + 1))
                : static_cast<float>(static_cast<int8_t>(code)) * scale;
      }
    }
  }

  void make_dense() {
    const bool wide = shape.source == Source::kW32 || shape.source == Source::kPlainF32;
    const uint16_t type = wide ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
    ld = is_plain() ? shape.k + 3 : shape.k;
    const auto element = static_cast<int64_t>(wide ? 4 : 2);
    GuardedBuffer rows(static_cast<size_t>(((shape.n - 1) * ld + shape.k) * element), Flush::kBack, static_cast<size_t>(element),
                       0xFF);
    constexpr uint32_t kEdges[] = {0x7FC12345, 0xFFFF0000, 0x7F800000, 0xFF800000, 0x80000000, 0x00010000, 0x00000001, 0x7F7F8000};
    for (int64_t row = 0; row < shape.n; ++row) {
      for (int64_t k = 0; k < shape.k; ++k) {
        const uint64_t draw = random_();
        const float value = draw % 16 == 0 ? std::bit_cast<float>(kEdges[draw / 16 % 8]) : random_value(random_, -30, 30);
        put(rows.data(), type, row * ld + k, value);
        values_[static_cast<size_t>(row * shape.k + k)] = get(rows.data(), type, row * ld + k);
      }
    }
    if (is_plain()) {
      layout.n = shape.n;
      layout.k = shape.k;
      table = std::move(rows);
      return;
    }
    ASSERT_EQ(omni_layout_init(&layout, wide ? OMNI_FORMAT_W32 : OMNI_FORMAT_W16, shape.n, shape.k, static_cast<uint32_t>(shape.k),
                               OMNI_DTYPE_NONE),
              OMNI_OK)
        << omni_last_error();
    size_t bytes = 0;
    ASSERT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK);
    table = GuardedBuffer(bytes, Flush::kBack, 16);
    omni_pack_dense_args pack{};
    pack.size = sizeof pack;
    pack.source_type = type;
    pack.layout = layout;
    pack.source = rows.data();
    pack.source_bytes = rows.size();
    pack.out = table.data();
    pack.out_bytes = bytes;
    ASSERT_EQ(omni_pack_dense(&pack, nullptr), OMNI_OK) << omni_last_error();
  }

  std::mt19937_64 random_;
  std::vector<float> values_;
};

OwnedPlan make_plan(const omni_gather_query& query) {
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_gather_select(&query, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

template <typename Id>
void check_gather(Table& table, uint16_t out_type, float multiplier, const char* kernel, const std::vector<Id>& ids, Flush flush,
                  const omni_parallel* parallel = nullptr) {
  const OwnedPlan plan = make_plan(table.query(out_type, multiplier, kernel));
  ASSERT_NE(plan, nullptr);
  const int64_t k = table.shape.k, ld = k + 2, element = out_type == OMNI_DTYPE_F32 ? 4 : 2,
                count = static_cast<int64_t>(ids.size());
  GuardedBuffer out(static_cast<size_t>(((count - 1) * ld + k) * element), flush, static_cast<size_t>(element), 0x5A);
  GuardedBuffer guarded_ids = GuardedBuffer::copy_of(std::span<const Id>(ids), flush);
  table.table.make_read_only();
  omni_gather_args args = table.args();
  args.id_bytes = sizeof(Id);
  args.count = count;
  args.ids = guarded_ids.data();
  args.out = out.data();
  args.ld_out = ld;
  args.parallel = parallel;
  ASSERT_EQ(omni_gather_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  const float factor = multiplier == 0.0F ? 1.0F : multiplier;
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < ld; ++c) {
      if (i == count - 1 && c >= k) break;
      const uint32_t actual = element == 4 ? out.as<uint32_t>()[i * ld + c] : out.as<uint16_t>()[i * ld + c];
      const uint32_t expected =
          c >= k ? (element == 4 ? 0x5A5A5A5A : 0x5A5A) : table.expected(ids[static_cast<size_t>(i)], c, out_type, factor);
      ASSERT_EQ(actual, expected) << kernel << " source " << static_cast<int>(table.shape.source) << " n " << table.shape.n << " k "
                                  << k << " id " << ids[static_cast<size_t>(i)] << " column " << c;
    }
  }
  EXPECT_TRUE(out.intact());
}

class Gather : public KernelTest {};
INSTANTIATE_TEST_SUITE_P(Registry, Gather, testing::ValuesIn(kernels_of(Op::kGather)), kernel_test_name);

// Every row of tables with every kind of tail, forwards and repeated.
TEST_P(Gather, EveryRowOfEveryKindOfTable) {
  for (const Source source : kSources) {
    for (const int64_t n : {1, 16, 17, 48, 64, 80, 113, 129}) {
      for (const int64_t k : {1, 2, 31, 33, 100, 256, 300}) {
        Shape shape;
        shape.source = source;
        shape.n = n;
        shape.k = k;
        constexpr uint32_t kGroups[] = {32, 64, 128, 256};
        shape.group = (n + k) % 5 == 4 ? static_cast<uint32_t>(k) : kGroups[(n + k) % 5 % 4];
        shape.scale_type = k % 2 == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
        Table table(shape, static_cast<uint64_t>(n * 1000 + k));
        if (HasFatalFailure()) return;
        std::vector<int32_t> ids;
        for (int64_t i = 0; i < n; ++i) ids.push_back(static_cast<int32_t>(i));
        ids.push_back(0);
        ids.push_back(static_cast<int32_t>(n - 1));
        const Flush flush = k % 2 == 0 ? Flush::kFront : Flush::kBack;
        check_gather(table, OMNI_DTYPE_BF16, 0.0F, kernel(), ids, flush);
        check_gather(table, OMNI_DTYPE_F32, 1.0F, kernel(), ids, flush);
        check_gather(table, n % 2 == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32, 45.254834F, kernel(), ids, flush);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Gather, AnyIdsAnyThreads) {
  std::mt19937_64 random(2);
  for (const Source source : kSources) {
    Shape shape;
    shape.source = source;
    shape.n = 300;
    shape.k = 520;
    Table table(shape, 7);
    std::vector<int64_t> ids(200);
    for (int64_t& id : ids) id = static_cast<int64_t>(random() % 300);
    const uint32_t threads = 3;
    const omni_parallel shared[] = {backwards(4), fresh_threads(&threads)};
    for (const omni_parallel& parallel : shared) {
      check_gather(table, OMNI_DTYPE_BF16, 0.0F, kernel(), ids, Flush::kBack, &parallel);
      if (HasFatalFailure()) return;
    }
    check_gather(table, OMNI_DTYPE_F32, -0.5F, kernel(), ids, Flush::kBack);
  }
}

// Infinite and NaN scales, and scales so small that only one rounding is right.
TEST_P(Gather, EqualsDequantisation) {
  for (const omni_dtype scale_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    Shape shape;
    shape.n = 113;
    shape.k = 160;
    shape.scale_type = scale_type;
    Table table(shape, 3);
    std::mt19937_64 random(9);
    for (size_t i = 0; i < table.scales.size() / 4; ++i) {
      if (random() % 4 == 0) table.scales.as<uint32_t>()[i] = static_cast<uint32_t>(random());
    }
    std::vector<int32_t> ids(static_cast<size_t>(shape.n));
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(i);
    for (const omni_dtype out_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      const size_t bytes = static_cast<size_t>(shape.n * shape.k) * (out_type == OMNI_DTYPE_F32 ? 4 : 2);
      std::vector<uint8_t> gathered(bytes), dequantised(bytes);
      const OwnedPlan plan = make_plan(table.query(static_cast<uint16_t>(out_type), 0.0F, kernel()));
      omni_gather_args args = table.args();
      args.count = shape.n;
      args.ids = ids.data();
      args.out = gathered.data();
      args.ld_out = shape.k;
      ASSERT_EQ(omni_gather_run(plan.get(), &args), OMNI_OK) << omni_last_error();
      omni_dequant_args dequant{};
      dequant.size = sizeof dequant;
      dequant.layout = table.layout;
      dequant.codes = table.table.data();
      dequant.codes_bytes = table.table.size();
      dequant.scales = table.scales.data();
      dequant.scales_bytes = table.scales.size();
      dequant.n1 = shape.n;
      dequant.k1 = shape.k;
      dequant.out = dequantised.data();
      dequant.out_type = static_cast<uint16_t>(out_type);
      dequant.order = OMNI_ORDER_NK;
      dequant.ld_out = shape.k;
      ASSERT_EQ(omni_dequantize(&dequant), OMNI_OK) << omni_last_error();
      EXPECT_EQ(gathered, dequantised) << kernel();
    }
  }
}

TEST(GatherApi, RefusesBadArguments) {
  Shape shape;
  Table table(shape, 1);
  const OwnedPlan plan = make_plan(table.query(OMNI_DTYPE_F32, 0.0F, nullptr));
  const int32_t ids[] = {3, 79, 0};
  std::vector<float> out(3 * 96, 7.0F);
  const auto refused = [&](omni_status expected, const char* word, const std::function<void(omni_gather_args*)>& spoil) {
    omni_gather_args args = table.args();
    args.count = 3;
    args.ids = ids;
    args.out = out.data();
    args.ld_out = 96;
    spoil(&args);
    EXPECT_EQ(omni_gather_run(plan.get(), &args), expected) << word;
    EXPECT_NE(std::string(omni_last_error()).find(word), std::string::npos) << omni_last_error();
    for (const float value : out) ASSERT_EQ(value, 7.0F) << word;
  };
  const int32_t high[] = {3, 80, -1}, low[] = {3, 1, -1};
  const int64_t far[] = {3, 1, int64_t{1} << 32};
  refused(OMNI_ERR_RANGE, "ids[1] is 80, the table has 80 rows", [&](auto* a) { a->ids = high; });
  refused(OMNI_ERR_RANGE, "ids[2] is -1", [&](auto* a) { a->ids = low; });
  refused(OMNI_ERR_RANGE, "ids[2] is 4294967296", [&](auto* a) {
    a->ids = far;
    a->id_bytes = 8;
  });
  refused(OMNI_ERR_TYPE, "id_bytes is 2", [](auto* a) { a->id_bytes = 2; });
  refused(OMNI_ERR_NULL, "ids", [](auto* a) { a->ids = nullptr; });
  refused(OMNI_ERR_NULL, "table", [](auto* a) { a->table = nullptr; });
  refused(OMNI_ERR_NULL, "scales", [](auto* a) { a->scales = nullptr; });
  refused(OMNI_ERR_NULL, "out", [](auto* a) { a->out = nullptr; });
  refused(OMNI_ERR_SHAPE, "count is -1", [](auto* a) { a->count = -1; });
  refused(OMNI_ERR_STRIDE, "out is 95", [](auto* a) { a->ld_out = 95; });
  refused(OMNI_ERR_BUFFER_SIZE, "table_bytes", [](auto* a) { a->table_bytes -= 1; });
  refused(OMNI_ERR_BUFFER_SIZE, "scales_bytes", [](auto* a) { a->scales_bytes -= 1; });
  refused(OMNI_ERR_ALIGNMENT, "table", [](auto* a) { a->table = static_cast<const uint8_t*>(a->table) + 8; });
  refused(OMNI_ERR_STRUCT_SIZE, "size", [](auto* a) { a->size = 8; });
}

TEST(GatherApi, RefusesBadQueries) {
  const Table table(Shape{}, 1);
  const auto refused = [&](omni_status expected, const char* word, const std::function<void(omni_gather_query*)>& spoil) {
    omni_gather_query query = table.query(OMNI_DTYPE_F32, 0.0F, nullptr);
    spoil(&query);
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_gather_select(&query, &plan), expected) << word;
    EXPECT_NE(std::string(omni_last_error()).find(word), std::string::npos) << omni_last_error();
    EXPECT_EQ(plan, nullptr);
  };
  refused(OMNI_ERR_STRUCT_SIZE, "size is 4", [](auto* q) { q->size = 4; });
  refused(OMNI_ERR_TYPE, "out_type", [](auto* q) { q->out_type = OMNI_DTYPE_U8; });
  refused(OMNI_ERR_TYPE, "plain_type", [](auto* q) { q->plain_type = OMNI_DTYPE_F16; });
  refused(OMNI_ERR_RANGE, "multiplier", [](auto* q) { q->multiplier = std::numeric_limits<float>::infinity(); });
  refused(OMNI_ERR_TYPE, "reserved", [](auto* q) { q->reserved = 1; });
  refused(OMNI_ERR_UNKNOWN_NAME, "gather_nonsense", [](auto* q) { q->kernel = "gather_nonsense"; });
  refused(OMNI_ERR_LAYOUT, "gptq",
          [](auto* q) { ASSERT_EQ(omni_layout_init(&q->table, OMNI_FORMAT_GPTQ, 80, 96, 32, OMNI_DTYPE_BF16), OMNI_OK); });
  refused(OMNI_ERR_SHAPE, "table.n is -1", [](auto* q) {
    q->plain_type = OMNI_DTYPE_F32;
    q->table.n = -1;
  });
}

TEST(GatherApi, EmptyWorkNeedsNothing) {
  const Table table(Shape{}, 1);
  const OwnedPlan plan = make_plan(table.query(OMNI_DTYPE_F32, 0.0F, nullptr));
  omni_gather_args args{};
  args.size = sizeof args;
  EXPECT_EQ(omni_gather_run(plan.get(), &args), OMNI_OK) << omni_last_error();
}

}  // namespace
}  // namespace okl::test
