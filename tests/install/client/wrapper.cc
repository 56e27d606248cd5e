// SPDX-License-Identifier: Apache-2.0
// The C++ wrapper from outside: packs, multiplies on a pool and on a callable, and turns a status into an exception.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "omni/omni.hpp"

namespace {

constexpr int64_t kN = 80;
constexpr int64_t kK = 128;
constexpr uint32_t kGroup = 32;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "failed: %s\n", what);
  std::exit(1);
}

// One row of ones: every channel is the sum of its weights.
std::vector<float> sums(const omni::Plan& plan, const omni::PackedMemory& codes, const std::vector<float>& scales,
                        const omni_parallel* parallel) {
  const std::vector<uint16_t> x(kK, 0x3F80);  // 1.0
  std::vector<float> y(kN, -1.0F);
  const omni::PackedMemory workspace(plan.workspace_size(1) + 64);
  auto args = omni::sized<omni_linear_args>();
  args.m = 1;
  args.x = x.data();
  args.ldx = kK;
  args.codes = codes.data();
  args.codes_bytes = codes.size();
  args.scales = scales.data();
  args.scales_bytes = scales.size() * sizeof(float);
  args.y = y.data();
  args.ldy = kN;
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = parallel;
  plan.run(args);
  return y;
}

// A row of 3s has the norm 1; quantised it is a row of 127s.
void check_row_operations() {
  auto norm_query = omni::sized<omni_rmsnorm_query>();
  norm_query.x_type = OMNI_DTYPE_F32;
  norm_query.y_type = OMNI_DTYPE_F32;
  norm_query.n = kK;
  const omni::RmsNorm norm(norm_query);
  std::vector<float> row(kK, 3.0F);
  auto norm_args = omni::sized<omni_rmsnorm_args>();
  norm_args.m = 1;
  norm_args.x = norm_args.y = row.data();
  norm_args.ldx = norm_args.ldy = kK;
  norm.run(norm_args);
  require(row == std::vector<float>(kK, 1.0F), "norm of a constant row");

  auto quantize_query = omni::sized<omni_quantize_query>();
  quantize_query.x_type = OMNI_DTYPE_F32;
  quantize_query.k = kK;
  const omni::Quantize quantize(quantize_query);
  std::vector<int8_t> codes(kK);
  float scale = 0;
  auto quantize_args = omni::sized<omni_quantize_args>();
  quantize_args.m = 1;
  quantize_args.x = row.data();
  quantize_args.ldx = quantize_args.ld_codes = kK;
  quantize_args.codes = codes.data();
  quantize_args.scales = &scale;
  quantize.run(quantize_args);
  require(codes == std::vector<int8_t>(kK, 127) && scale == 1.0F / 127.0F, "quantised row");
}

// With one key in the cache, attention is its value.
void check_attention() {
  constexpr int64_t kHeadDim = 64;
  auto query = omni::sized<omni_attention_query>();
  query.cache_type = query.q_type = query.kv_type = query.out_type = OMNI_DTYPE_F32;
  query.heads = query.kv_heads = 1;
  query.head_dim = kHeadDim;
  query.max_m = 1;
  const omni::Attention attention(query);
  const int64_t capacity = omni::kv_cache_ring(1, 1);
  const omni::PackedMemory memory(omni::kv_cache_size(OMNI_DTYPE_F32, 1, kHeadDim, capacity));
  auto cache = omni::sized<omni_kv_cache>();
  omni::check(omni_kv_cache_init(&cache, OMNI_DTYPE_F32, 1, kHeadDim, capacity, memory.data(), memory.size()));

  const std::vector<float> key(kHeadDim, 0.5F);
  std::vector<float> value(kHeadDim);
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<float>(i);
  auto append = omni::sized<omni_attention_append_args>();
  append.rows = 1;
  append.cache = &cache;
  append.k = key.data();
  append.v = value.data();
  append.ldk = append.ldv = kHeadDim;
  attention.append(append);
  std::vector<float> out(kHeadDim);
  const omni::PackedMemory workspace(attention.workspace_size(1) + 64);
  auto args = omni::sized<omni_attention_args>();
  args.m = 1;
  args.cache = &cache;
  args.q = key.data();
  args.out = out.data();
  args.ldq = args.ld_out = kHeadDim;
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  attention.run(args);
  require(out == value, "attention to one key");
}

}  // namespace

int main() {
  check_row_operations();
  check_attention();

  const omni_layout layout = omni::make_layout(OMNI_FORMAT_TG4, kN, kK, kGroup, OMNI_DTYPE_F32);
  require(omni::layout_text(omni::parse_layout(omni::layout_text(layout))) == omni::layout_text(layout), "layout text");

  const omni::Pool pool(2);
  require(pool.threads() == 2, "pool threads");
  // Channel n holds n mod 16 everywhere; scale 1, zero 0.
  std::vector<uint8_t> source(kN * kK);
  for (int64_t i = 0; i < kN * kK; ++i) source[i] = static_cast<uint8_t>(i / kK % 16);
  omni::PackedMemory codes(omni::packed_size(layout));
  auto repack = omni::sized<omni_repack_args>();
  repack.source_format = OMNI_FORMAT_CODES_U8;
  repack.destination_format = OMNI_FORMAT_TG4;
  repack.n = kN;
  repack.k = kK;
  repack.source = source.data();
  repack.source_bytes = source.size();
  repack.destination = codes.data();
  repack.destination_bytes = codes.size();
  repack.parallel = pool.parallel();
  omni::repack(repack);
  std::vector<float> scales(omni::scales_size(layout) / sizeof(float));
  for (size_t i = 0; i < scales.size(); i += 2) scales[i] = 1.0F;

  auto query = omni::sized<omni_linear_query>();
  query.numerics = OMNI_NUMERICS_GROUP;
  query.x_type = OMNI_DTYPE_BF16;
  query.y_type = OMNI_DTYPE_F32;
  query.max_m = 1;
  query.weights = layout;
  const omni::Plan plan(query);

  std::vector<float> expected(kN);
  for (int64_t n = 0; n < kN; ++n) expected[n] = static_cast<float>((n % 16 - 8) * kK);
  require(sums(plan, codes, scales, pool.parallel()) == expected, "sums on the pool");
  const omni::ParallelFor halves(2, [](int64_t count, auto run) {
    std::thread second([&] {
      for (int64_t i = count / 2; i < count; ++i) run(i);
    });
    for (int64_t i = 0; i < count / 2; ++i) run(i);
    second.join();
  });
  require(sums(plan, codes, scales, halves.parallel()) == expected, "sums on a callable");

  try {
    query.weights.group = 48;
    const omni::Plan refused(query);
    require(false, "group 48 is refused");
  } catch (const omni::Error& error) {
    require(error.status() == OMNI_ERR_GROUP, error.what());
  }
  require(!omni::kernels().empty() && omni::machine().cores_usable >= 1, "machine and kernels");
  std::printf("%s\n", plan.info().kernel);
  return 0;
}
