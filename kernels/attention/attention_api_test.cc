// SPDX-License-Identifier: Apache-2.0
// The entries of omni/attention.h: selection, sizes, the documented layout, every refusal, and what a refusal leaves alone.
#include <algorithm>

#include "kernels/attention/attention_plan.h"
#include "tests/support/attention_case.h"

namespace okl::test {
namespace {

bool error_has(const char* word) { return std::string(omni_last_error()).find(word) != std::string::npos; }

// A plan with a cache of 64 + 64 slots for a window of 70, everything valid.
struct Bench {
  AttentionShape shape;
  OwnedPlan plan;
  omni_kv_cache cache = {};
  GuardedBuffer memory{0}, k{0}, v{0}, q{0}, out{0}, workspace{0};
  omni_parallel alone = one_thread();
  omni_attention_append_args append = {};
  omni_attention_args run = {};

  explicit Bench(omni_dtype type = OMNI_DTYPE_BF16) {
    shape.cache = type;
    shape.dim = 16;
    shape.kv_heads = 2;
    shape.heads = 4;
    shape.window = 70;
    plan = make_attention_plan(attention_query(shape, 8, 2, nullptr));
    int64_t capacity = 0;
    size_t bytes = 0;
    EXPECT_EQ(omni_kv_cache_ring(70, 50, &capacity), OMNI_OK);
    EXPECT_EQ(capacity, 128);
    EXPECT_EQ(omni_kv_cache_size(type, 2, 16, capacity, &bytes), OMNI_OK);
    memory = GuardedBuffer(bytes, Flush::kBack, 64, 0);
    EXPECT_EQ(omni_kv_cache_init(&cache, type, 2, 16, capacity, memory.data(), bytes), OMNI_OK);
    k = GuardedBuffer(200 * 32 * 2, Flush::kBack, 2, 0);
    v = GuardedBuffer(200 * 32 * 2, Flush::kBack, 2, 0);
    q = GuardedBuffer(8 * 64 * 2, Flush::kBack, 2, 0);
    out = GuardedBuffer(8 * 64 * 4, Flush::kBack, 4, 0xEE);
    EXPECT_EQ(omni_attention_workspace_size(plan.get(), 8, &bytes), OMNI_OK);
    workspace = GuardedBuffer(bytes, Flush::kBack, 64, 0);
    append = {sizeof append, 50, 0, &cache, k.data(), 32, v.data(), 32, &alone};
    run = {sizeof run, 8, 42, &cache, q.data(), 64, out.data(), 64, workspace.data(), workspace.size(), &alone};
  }
  omni_status do_append() { return omni_attention_append(plan.get(), &append); }
  omni_status do_run() { return omni_attention_run(plan.get(), &run); }
  bool untouched() {
    return std::ranges::all_of(out.span<uint8_t>(), [](uint8_t byte) { return byte == 0xEE; });
  }
};

TEST(AttentionCache, SizesAreThoseOfTheDocumentation) {
  size_t bytes = 0;
  ASSERT_EQ(omni_kv_cache_size(OMNI_DTYPE_BF16, 2, 256, 4096, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, 4096U * 2 * 2 * 256 * 2);
  ASSERT_EQ(omni_kv_cache_size(OMNI_DTYPE_F32, 3, 64, 64, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, 64U * 3 * 2 * 64 * 4);
  ASSERT_EQ(omni_kv_cache_size(OMNI_DTYPE_S8, 2, 128, 1 << 20, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, (1U << 20) * 2U * 2 * (128 + 4));
  ASSERT_EQ(omni_kv_cache_size(OMNI_DTYPE_BF16, 2, 72, 128, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, 2U * 2 * (64 * 2 * 72 * 2 + 256));
  int64_t capacity = 0;
  ASSERT_EQ(omni_kv_cache_ring(512, 1, &capacity), OMNI_OK);
  EXPECT_EQ(capacity, 512);
  ASSERT_EQ(omni_kv_cache_ring(512, 2, &capacity), OMNI_OK);
  EXPECT_EQ(capacity, 576);
  ASSERT_EQ(omni_kv_cache_ring(1, 1, &capacity), OMNI_OK);
  EXPECT_EQ(capacity, 64);
}

TEST(AttentionCache, RefusesBadShapes) {
  size_t bytes = 7;
  int64_t capacity = 7;
  EXPECT_EQ(omni_kv_cache_size(OMNI_DTYPE_F16, 1, 64, 64, &bytes), OMNI_ERR_TYPE);
  EXPECT_EQ(omni_kv_cache_size(OMNI_DTYPE_BF16, 0, 64, 64, &bytes), OMNI_ERR_SHAPE);
  for (const uint32_t dim : {0U, 4U, 12U, 264U}) {
    EXPECT_EQ(omni_kv_cache_size(OMNI_DTYPE_BF16, 1, dim, 64, &bytes), OMNI_ERR_SHAPE);
    EXPECT_TRUE(error_has("head_dim"));
  }
  for (const int64_t slots : {int64_t{0}, int64_t{-64}, int64_t{65}}) {
    EXPECT_EQ(omni_kv_cache_size(OMNI_DTYPE_BF16, 1, 64, slots, &bytes), OMNI_ERR_SHAPE);
  }
  EXPECT_EQ(omni_kv_cache_size(OMNI_DTYPE_F32, 65536, 256, INT64_MAX / 64 * 64, &bytes), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(omni_kv_cache_size(OMNI_DTYPE_F32, 1, 256, 64, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(omni_kv_cache_ring(0, 1, &capacity), OMNI_ERR_SHAPE);
  EXPECT_EQ(omni_kv_cache_ring(1, 0, &capacity), OMNI_ERR_SHAPE);
  EXPECT_EQ(omni_kv_cache_ring(INT64_MAX, INT64_MAX, &capacity), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(omni_kv_cache_ring(1, 1, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(bytes, 7U);
  EXPECT_EQ(capacity, 7);
  alignas(64) uint8_t memory[64] = {};
  omni_kv_cache cache = {};
  EXPECT_EQ(omni_kv_cache_init(&cache, OMNI_DTYPE_BF16, 1, 8, 64, nullptr, 1 << 20), OMNI_ERR_NULL);
  EXPECT_EQ(omni_kv_cache_init(&cache, OMNI_DTYPE_BF16, 1, 8, 64, memory + 1, 1 << 20), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(omni_kv_cache_init(&cache, OMNI_DTYPE_BF16, 1, 8, 64, memory, 64), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(omni_kv_cache_init(nullptr, OMNI_DTYPE_BF16, 1, 8, 64, memory, 64), OMNI_ERR_NULL);
  EXPECT_EQ(cache.size, 0U);
}

// Every byte of the records against the picture in omni/attention.h.
TEST(AttentionCache, LayoutIsThatOfTheDocumentation) {
  for (const omni_dtype type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8}) {
    AttentionShape shape;
    shape.cache = type;
    shape.dim = 24;
    shape.kv_heads = shape.heads = 3;
    shape.tokens = 130;
    AttentionInputs in(shape, 8);
    in.k[5] = 0x1p-60F;   // scrubbed with bf16
    in.v[5] = 0x1p-130F;  // a bf16 subnormal: a zero
    const attention_reference::Sequence sequence(in);
    const OwnedPlan plan = make_attention_plan(attention_query(shape, 1, 1, nullptr));
    size_t bytes = 0;
    ASSERT_EQ(omni_kv_cache_size(type, 3, 24, 192, &bytes), OMNI_OK);
    const size_t record = bytes / 9, element = type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_BF16 ? 2 : 1;
    GuardedBuffer memory(bytes, Flush::kBack, 64, 0xFF), k(in.k.size() * 2, Flush::kBack, 2), v(in.v.size() * 2, Flush::kBack, 2);
    for (size_t i = 0; i < in.k.size(); ++i) {
      put(k.data(), OMNI_DTYPE_BF16, static_cast<int64_t>(i), in.k[i]);
      put(v.data(), OMNI_DTYPE_BF16, static_cast<int64_t>(i), in.v[i]);
    }
    omni_kv_cache cache;
    ASSERT_EQ(omni_kv_cache_init(&cache, type, 3, 24, 192, memory.data(), bytes), OMNI_OK);
    const omni_attention_append_args append = {sizeof append, 130, 0, &cache, k.data(), 72, v.data(), 72, nullptr};
    ASSERT_EQ(omni_attention_append(plan.get(), &append), OMNI_OK) << omni_last_error();
    const auto value = [&](const uint8_t* at) -> float {
      if (type == OMNI_DTYPE_S8) return static_cast<float>(*reinterpret_cast<const int8_t*>(at));
      return get(at, static_cast<uint16_t>(type), 0);
    };
    for (size_t t = 0; t < 192; ++t) {
      for (size_t h = 0; h < 3; ++h) {
        const uint8_t* at = memory.data() + (t / 64 * 3 + h) * record;
        const uint8_t* values = at + 64 * 24 * element;
        const float* scales = reinterpret_cast<const float*>(values + 64 * 24 * element);
        const size_t slot = t % 64;
        for (size_t i = 0; i < 24; ++i) {
          const size_t key_element = type == OMNI_DTYPE_BF16 ? i / 2 * 128 + slot * 2 + i % 2 : i * 64 + slot;
          const uint8_t* key_at = at + key_element * element;
          const uint8_t* value_at = values + (slot * 24 + i) * element;
          if (t >= 130) {
            ASSERT_TRUE(std::all_of(key_at, key_at + element, [](uint8_t byte) { return byte == 0xFF; })) << "unwritten slot " << t;
            continue;
          }
          ASSERT_EQ(value(key_at), sequence.k[t * 3 + h].values[i]) << t << " " << h << " " << i;
          ASSERT_EQ(value(value_at), sequence.v[t * 3 + h].values[i]) << t << " " << h << " " << i;
        }
        if (type == OMNI_DTYPE_S8 && t < 130) {
          ASSERT_EQ(scales[slot], sequence.k[t * 3 + h].scale);
          ASSERT_EQ(scales[64 + slot], sequence.v[t * 3 + h].scale);
        }
      }
    }
  }
}

TEST(AttentionSelect, ChoosesTheFirstRowThatTheMachineRuns) {
  AttentionShape shape;
  omni_attention_query query = attention_query(shape, 1, 1, nullptr);
  for (const omni_dtype type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8}) {
    query.cache_type = static_cast<uint16_t>(type);
    for (const char* tier : {"portable", "avx2", "avx512f"}) {
      query.max_isa = tier;
      const OwnedPlan plan = make_attention_plan(query);
      ASSERT_NE(plan, nullptr);
      omni_plan_info info = {};
      info.size = sizeof info;
      ASSERT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_OK);
      const std::string name(info.kernel), wanted = std::string("_") + tier;
      const KernelRow* row = find_kernel(name);
      ASSERT_NE(row, nullptr);
      EXPECT_EQ(row->activation, type);
      EXPECT_STREQ(info.code, "compiled");
      const std::optional<IsaMask> mask = tier_mask(tier);
      if (((*mask & (kIsaAvx2Tier | kIsaAvx512Tier)) & ~hardware_isa()) == 0) {
        EXPECT_TRUE(name.ends_with(wanted)) << name << " under " << tier;
      }
    }
  }
}

TEST(AttentionSelect, RefusesBadQueries) {
  const omni_attention_query good = attention_query(AttentionShape(), 4, 1, nullptr);
  omni_plan* plan = nullptr;
  const auto refused = [&](const std::function<void(omni_attention_query*)>& change, omni_status status, const char* word) {
    omni_attention_query query = good;
    change(&query);
    EXPECT_EQ(omni_attention_select(&query, &plan), status) << word;
    EXPECT_TRUE(error_has(word)) << omni_last_error();
    EXPECT_EQ(plan, nullptr);
  };
  EXPECT_EQ(omni_attention_select(nullptr, &plan), OMNI_ERR_NULL);
  EXPECT_EQ(omni_attention_select(&good, nullptr), OMNI_ERR_NULL);
  refused([](auto* q) { q->size = sizeof *q - 1; }, OMNI_ERR_STRUCT_SIZE, "size");
  refused([](auto* q) { q->cache_type = OMNI_DTYPE_F16; }, OMNI_ERR_TYPE, "cache_type");
  refused([](auto* q) { q->q_type = OMNI_DTYPE_S8; }, OMNI_ERR_TYPE, "q_type");
  refused([](auto* q) { q->kv_type = OMNI_DTYPE_S8; }, OMNI_ERR_TYPE, "kv_type");
  refused([](auto* q) { q->out_type = 77; }, OMNI_ERR_TYPE, "out_type");
  refused([](auto* q) { q->kv_heads = 0; }, OMNI_ERR_SHAPE, "kv_heads");
  refused([](auto* q) { q->kv_heads = 3; }, OMNI_ERR_SHAPE, "heads");
  refused([](auto* q) { q->heads = 0; }, OMNI_ERR_SHAPE, "heads");
  refused([](auto* q) { q->head_dim = 12; }, OMNI_ERR_SHAPE, "head_dim");
  refused([](auto* q) { q->head_dim = 264; }, OMNI_ERR_SHAPE, "head_dim");
  refused([](auto* q) { q->max_m = 0; }, OMNI_ERR_SHAPE, "max_m");
  refused([](auto* q) { q->max_threads = 1 << 20; }, OMNI_ERR_RANGE, "max_threads");
  refused([](auto* q) { q->window = -1; }, OMNI_ERR_SHAPE, "window");
  refused([](auto* q) { q->scale = std::numeric_limits<float>::quiet_NaN(); }, OMNI_ERR_RANGE, "scale");
  refused([](auto* q) { q->kernel = "attention_bf16_nowhere"; }, OMNI_ERR_UNKNOWN_NAME, "nowhere");
  refused([](auto* q) { q->kernel = "attention_s8_portable"; }, OMNI_ERR_NO_KERNEL, "attention_s8_portable");
  refused([](auto* q) { q->max_isa = "avx3"; }, OMNI_ERR_UNKNOWN_NAME, "avx3");
}

TEST(AttentionSelect, APlanOfAnotherOperationIsRefused) {
  Bench bench;
  EXPECT_EQ(omni_attention_run(nullptr, &bench.run), OMNI_ERR_NULL);
  EXPECT_EQ(omni_attention_append(nullptr, &bench.append), OMNI_ERR_NULL);
  omni_linear_args linear = {};
  linear.size = sizeof linear;
  EXPECT_EQ(omni_run(bench.plan.get(), &linear), OMNI_ERR_TYPE);
}

TEST(AttentionAppend, RefusesBadArguments) {
  const auto refused = [](const std::function<void(Bench*)>& change, omni_status status, const char* word) {
    Bench bench;
    change(&bench);
    const omni_kv_cache before = bench.cache;
    EXPECT_EQ(bench.do_append(), status) << word;
    EXPECT_TRUE(error_has(word)) << omni_last_error();
    EXPECT_EQ(std::memcmp(&before, &bench.cache, sizeof before), 0);
    EXPECT_TRUE(std::ranges::all_of(bench.memory.span<uint8_t>(), [](uint8_t byte) { return byte == 0; }));
  };
  EXPECT_EQ(omni_attention_append(Bench().plan.get(), nullptr), OMNI_ERR_NULL);
  refused([](Bench* b) { b->append.size = 8; }, OMNI_ERR_STRUCT_SIZE, "size");
  refused([](Bench* b) { b->append.k = nullptr; }, OMNI_ERR_NULL, "k is");
  refused([](Bench* b) { b->append.v = nullptr; }, OMNI_ERR_NULL, "v is");
  refused([](Bench* b) { b->append.k = b->k.data() + 1; }, OMNI_ERR_ALIGNMENT, "k is");
  refused([](Bench* b) { b->append.ldk = 31; }, OMNI_ERR_STRIDE, "k is 31");
  refused([](Bench* b) { b->append.ldv = -1; }, OMNI_ERR_STRIDE, "v is -1");
  refused([](Bench* b) { b->append.ldv = INT64_MAX / 2; }, OMNI_ERR_OVERFLOW, "v");
  refused([](Bench* b) { b->append.position = -1; }, OMNI_ERR_RANGE, "position");
  refused([](Bench* b) { b->append.position = INT64_MAX; }, OMNI_ERR_RANGE, "position");
  refused([](Bench* b) { b->cache.begin = 10, b->cache.end = 20; }, OMNI_ERR_RANGE, "[10, 20]");
  refused([](Bench* b) { b->cache.end = 20, b->append.position = 21; }, OMNI_ERR_RANGE, "21");
  refused([](Bench* b) { b->append.rows = (1 << 20) + 1; }, OMNI_ERR_SHAPE, "rows");
  refused([](Bench* b) { b->cache.type = OMNI_DTYPE_F32; }, OMNI_ERR_BUFFER_SIZE, "cache.bytes");
  refused([](Bench* b) { b->cache.type = OMNI_DTYPE_S8; }, OMNI_ERR_TYPE, "cache_type 2");
  refused([](Bench* b) { b->cache.type = OMNI_DTYPE_F16; }, OMNI_ERR_TYPE, "type");
  refused([](Bench* b) { b->cache.size = 8; }, OMNI_ERR_STRUCT_SIZE, "omni_kv_cache");
  refused([](Bench* b) { b->cache.head_dim = 8; }, OMNI_ERR_SHAPE, "2 of 16");
  refused([](Bench* b) { b->cache.capacity = 100; }, OMNI_ERR_SHAPE, "capacity");
  refused([](Bench* b) { b->cache.capacity = 192; }, OMNI_ERR_BUFFER_SIZE, "cache.bytes");
  refused([](Bench* b) { b->cache.begin = 5; }, OMNI_ERR_RANGE, "[5, 0)");
  refused([](Bench* b) { b->cache.end = 129; }, OMNI_ERR_RANGE, "128 slots");
  refused([](Bench* b) { b->cache.data = nullptr; }, OMNI_ERR_NULL, "cache.data");
  refused([](Bench* b) { b->cache.reserved = 1; }, OMNI_ERR_TYPE, "reserved");
  refused([](Bench* b) { b->append.cache = nullptr; }, OMNI_ERR_NULL, "cache");
  static omni_parallel broken = {sizeof broken, 0, nullptr, one_thread().parallel_for};
  refused([](Bench* b) { b->append.parallel = &broken; }, OMNI_ERR_RANGE, "threads");
}

// W - 1 + the largest chunk, rounded up to 64: one block less is refused as soon as a key would be lost that a query sees.
TEST(AttentionAppend, RefusesARingThatIsTooSmall) {
  for (const int64_t window : {8, 100, 512}) {
    for (const int64_t chunk : {1, 7, 64, 100}) {
      AttentionShape shape;
      shape.dim = 8;
      shape.window = window;
      int64_t capacity = 0;
      ASSERT_EQ(omni_kv_cache_ring(window, chunk, &capacity), OMNI_OK);
      if (capacity <= 64) continue;
      for (const bool small : {false, true}) {
        const int64_t slots = small ? capacity - 64 : capacity;
        size_t bytes = 0;
        ASSERT_EQ(omni_kv_cache_size(shape.cache, 1, 8, slots, &bytes), OMNI_OK);
        GuardedBuffer memory(bytes, Flush::kBack, 64);
        omni_kv_cache cache;
        ASSERT_EQ(omni_kv_cache_init(&cache, shape.cache, 1, 8, slots, memory.data(), bytes), OMNI_OK);
        const OwnedPlan plan = make_attention_plan(attention_query(shape, 128, 1, nullptr));
        GuardedBuffer rows(100 * 8 * 2, Flush::kBack, 2, 0);
        omni_status status = OMNI_OK;
        for (int64_t t = 0; t < 3 * capacity && status == OMNI_OK; t += chunk) {
          const omni_attention_append_args append = {
              sizeof append, static_cast<uint32_t>(chunk), t, &cache, rows.data(), 8, rows.data(), 8, nullptr};
          status = omni_attention_append(plan.get(), &append);
        }
        EXPECT_EQ(status, small ? OMNI_ERR_BUFFER_SIZE : OMNI_OK) << "window " << window << " chunk " << chunk;
        if (small) {
          EXPECT_TRUE(error_has(("ring of " + std::to_string(capacity)).c_str())) << omni_last_error();
        }
      }
    }
  }
  // Without a window every position stays visible.
  AttentionShape shape;
  shape.dim = 8;
  const OwnedPlan plan = make_attention_plan(attention_query(shape, 1, 1, nullptr));
  size_t bytes = 0;
  ASSERT_EQ(omni_kv_cache_size(shape.cache, 1, 8, 64, &bytes), OMNI_OK);
  GuardedBuffer memory(bytes, Flush::kBack, 64), rows(65 * 8 * 2, Flush::kBack, 2, 0);
  omni_kv_cache cache;
  ASSERT_EQ(omni_kv_cache_init(&cache, shape.cache, 1, 8, 64, memory.data(), bytes), OMNI_OK);
  omni_attention_append_args append = {sizeof append, 65, 0, &cache, rows.data(), 8, rows.data(), 8, nullptr};
  EXPECT_EQ(omni_attention_append(plan.get(), &append), OMNI_ERR_BUFFER_SIZE);
  append.rows = 64;
  EXPECT_EQ(omni_attention_append(plan.get(), &append), OMNI_OK);
}

TEST(AttentionRun, RefusesBadArguments) {
  const auto refused = [](const std::function<void(Bench*)>& change, omni_status status, const char* word) {
    Bench bench;
    ASSERT_EQ(bench.do_append(), OMNI_OK) << omni_last_error();
    change(&bench);
    EXPECT_EQ(bench.do_run(), status) << word;
    EXPECT_TRUE(error_has(word)) << omni_last_error();
    EXPECT_TRUE(bench.untouched());
  };
  EXPECT_EQ(omni_attention_run(Bench().plan.get(), nullptr), OMNI_ERR_NULL);
  refused([](Bench* b) { b->run.size = 8; }, OMNI_ERR_STRUCT_SIZE, "size");
  refused([](Bench* b) { b->run.m = 9; }, OMNI_ERR_SHAPE, "m 9");
  refused([](Bench* b) { b->run.position = -1; }, OMNI_ERR_RANGE, "position");
  refused([](Bench* b) { b->run.position = 43; }, OMNI_ERR_RANGE, "[0, 50)");
  refused([](Bench* b) { b->cache.begin = 1; }, OMNI_ERR_RANGE, "[1, 50)");
  refused([](Bench* b) { b->run.cache = nullptr; }, OMNI_ERR_NULL, "cache");
  refused([](Bench* b) { b->run.q = nullptr; }, OMNI_ERR_NULL, "q is");
  refused([](Bench* b) { b->run.out = nullptr; }, OMNI_ERR_NULL, "out is");
  refused([](Bench* b) { b->run.q = b->q.data() + 1; }, OMNI_ERR_ALIGNMENT, "q is");
  refused([](Bench* b) { b->run.out = b->out.data() + 2; }, OMNI_ERR_ALIGNMENT, "out is");
  refused([](Bench* b) { b->run.ldq = 63; }, OMNI_ERR_STRIDE, "q is 63");
  refused([](Bench* b) { b->run.ld_out = 63; }, OMNI_ERR_STRIDE, "out is 63");
  refused([](Bench* b) { b->run.ld_out = INT64_MAX / 2; }, OMNI_ERR_OVERFLOW, "out");
  refused([](Bench* b) { b->run.workspace = nullptr; }, OMNI_ERR_NULL, "workspace");
  refused([](Bench* b) { b->run.workspace = b->workspace.data() + 4; }, OMNI_ERR_ALIGNMENT, "workspace");
  refused([](Bench* b) { b->run.workspace_bytes -= 1; }, OMNI_ERR_BUFFER_SIZE, "workspace_bytes");
  static omni_parallel broken = {sizeof broken, 1, nullptr, nullptr};
  refused([](Bench* b) { b->run.parallel = &broken; }, OMNI_ERR_NULL, "parallel_for");
}

TEST(AttentionRun, NothingToDoNeedsNoPointers) {
  Bench bench;
  bench.append.rows = 0;
  bench.append.k = bench.append.v = nullptr;
  EXPECT_EQ(bench.do_append(), OMNI_OK);
  EXPECT_EQ(bench.cache.end, 0);
  const omni_attention_args none = {sizeof none, 0, 0, nullptr, nullptr, 0, nullptr, 0, nullptr, 0, nullptr};
  EXPECT_EQ(omni_attention_run(bench.plan.get(), &none), OMNI_OK) << omni_last_error();
  size_t bytes = 1;
  EXPECT_EQ(omni_attention_workspace_size(bench.plan.get(), 0, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, 0U);
  EXPECT_EQ(omni_attention_workspace_size(bench.plan.get(), 9, &bytes), OMNI_ERR_SHAPE);
  EXPECT_EQ(omni_attention_workspace_size(bench.plan.get(), 1, nullptr), OMNI_ERR_NULL);
}

// The promise of the header: bounded by rows and threads.
TEST(AttentionRun, WorkspaceStaysSmall) {
  AttentionShape shape;
  shape.heads = 16;
  shape.kv_heads = 4;
  shape.dim = 256;
  for (const uint32_t threads : {1U, 2U, 8U, 64U}) {
    const OwnedPlan plan = make_attention_plan(attention_query(shape, 4096, threads, nullptr));
    for (const uint32_t m : {1U, 3U, 17U, 100U, 512U, 4096U}) {
      size_t bytes = 0;
      ASSERT_EQ(omni_attention_workspace_size(plan.get(), m, &bytes), OMNI_OK);
      EXPECT_LE(bytes, size_t{threads} * (1U << 20)) << threads << " threads, " << m << " rows";
    }
  }
}

}  // namespace
}  // namespace okl::test
