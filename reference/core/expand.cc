// SPDX-License-Identifier: Apache-2.0
#include "reference/core/expand.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "reference/core/half.h"

namespace ref {
namespace {

// Rows of a slice: whole blocks of the packed formats, 8 MiB of fp32 at K = 2048.
constexpr int64_t kSliceRows = 1024;

omni_layout dense_layout(int64_t n, int64_t k) {
  omni_layout layout;
  check(omni_layout_init(&layout, OMNI_FORMAT_W32, n, k, static_cast<uint32_t>(k), OMNI_DTYPE_NONE), "expand");
  return layout;
}

size_t packed_bytes(const omni_layout& layout) {
  size_t bytes = 0;
  check(omni_packed_size(&layout, &bytes), "expand");
  return bytes;
}

// Rows [first, first + ids.size()) in fp32.
class RowReader {
 public:
  RowReader(const Matrix& matrix, const omni_parallel* parallel) : matrix_(matrix), parallel_(parallel) {
    omni_gather_query query = {};
    query.size = sizeof query;
    query.out_type = OMNI_DTYPE_F32;
    query.table = matrix.layout;
    omni_plan* plan = nullptr;
    check(omni_gather_select(&query, &plan), "expand");
    plan_.reset(plan);
  }
  void read(int64_t first, int64_t count, float* out) {
    ids_.resize(static_cast<size_t>(count));
    std::iota(ids_.begin(), ids_.end(), static_cast<int32_t>(first));
    omni_gather_args args = {};
    args.size = sizeof args;
    args.id_bytes = 4;
    args.count = count;
    args.ids = ids_.data();
    args.table = matrix_.codes.data();
    args.table_bytes = matrix_.codes.size();
    args.scales = matrix_.scales.data();
    args.scales_bytes = matrix_.scales.size();
    args.out = out;
    args.ld_out = matrix_.layout.k;
    args.parallel = parallel_;
    check(omni_gather_run(plan_.get(), &args), "expand");
  }

 private:
  const Matrix& matrix_;
  const omni_parallel* parallel_;
  Plan plan_;
  std::vector<int32_t> ids_;
};

}  // namespace

ExpandedMatrix widen_scales(const Matrix& tg4, const omni_parallel*) {
  ExpandedMatrix out{tg4, {}};
  if (tg4.layout.scale_type == OMNI_DTYPE_F32) return out;
  out.matrix.layout.scale_type = OMNI_DTYPE_F32;
  size_t bytes = 0;
  check(omni_scales_size(&out.matrix.layout, &bytes), "scales");
  out.memory = Memory(bytes);
  auto* wide = reinterpret_cast<float*>(out.memory.data());
  for (size_t i = 0; i < bytes / 4; ++i) {
    uint16_t narrow;
    std::memcpy(&narrow, tg4.scales.data() + 2 * i, 2);
    wide[i] = widen_bf16(narrow);
  }
  out.matrix.scales = {out.memory.data(), bytes};
  return out;
}

ExpandedMatrix expand_to_w32(const Matrix& matrix, const omni_parallel* parallel) {
  const int64_t n = matrix.layout.n, k = matrix.layout.k;
  ExpandedMatrix out{matrix, Memory(packed_bytes(dense_layout(n, k)))};
  RowReader reader(matrix, parallel);
  std::vector<float> rows(static_cast<size_t>(std::min(kSliceRows, n) * k));
  size_t offset = 0;
  for (int64_t first = 0; first < n; first += kSliceRows) {
    const int64_t count = std::min(kSliceRows, n - first);
    reader.read(first, count, rows.data());
    omni_pack_dense_args args = {};
    args.size = sizeof args;
    args.source_type = OMNI_DTYPE_F32;
    args.layout = dense_layout(count, k);
    args.source = rows.data();
    args.source_bytes = static_cast<size_t>(count * k) * 4;
    args.out = out.memory.data() + offset;
    args.out_bytes = packed_bytes(args.layout);
    args.parallel = parallel;
    check(omni_pack_dense(&args, nullptr), "expand");
    offset += args.out_bytes;
  }
  out.matrix.layout = dense_layout(n, k);
  out.matrix.codes = {out.memory.data(), offset};
  out.matrix.scales = {};
  return out;
}

}  // namespace ref
