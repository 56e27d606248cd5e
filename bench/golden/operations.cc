// SPDX-License-Identifier: Apache-2.0
#include "bench/golden/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string_view>

namespace omnibench {
namespace {

/// The pack kernel that served last, from the library's trace: omni_repack has no name to force, only the process-wide setting,
/// which another row may serve silently. Lines still reach standard error where OMNI_VERBOSE asks for them.
class PackTrace {
 public:
  explicit PackTrace(const std::string& kernel) {
    omni::check(omni_set_kernel(kernel.c_str()));
    omni::check(omni_set_trace(&PackTrace::line, this));
  }
  ~PackTrace() {
    omni_set_trace(nullptr, nullptr);
    omni_set_kernel(nullptr);
  }
  PackTrace(const PackTrace&) = delete;
  PackTrace& operator=(const PackTrace&) = delete;
  [[nodiscard]] const std::string& served() const { return served_; }

 private:
  static void line(void* self, const char* text) {
    static const bool verbose = std::getenv("OMNI_VERBOSE") != nullptr && std::string_view(std::getenv("OMNI_VERBOSE")) == "1";
    if (verbose) std::fprintf(stderr, "%s\n", text);
    constexpr std::string_view kPrefix = "repack: ";
    const std::string_view view(text);
    const size_t at = view.find(kPrefix);
    if (at != std::string_view::npos) static_cast<PackTrace*>(self)->served_ = view.substr(at + kPrefix.size());
  }
  std::string served_;
};

std::vector<std::byte> repeated(const std::vector<std::byte>& rows, size_t row_bytes, size_t count) {
  std::vector<std::byte> out(count * row_bytes);
  const size_t known = rows.size() / row_bytes;
  for (size_t i = 0; i < count; ++i) {
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(i % known * row_bytes), row_bytes,
                out.begin() + static_cast<std::ptrdiff_t>(i * row_bytes));
  }
  return out;
}

int64_t bytes_of(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_S8 ? 1 : 2; }

omni_linear_query query_of(const LinearProblem& problem, const std::string& kernel, uint32_t max_m) {
  auto query = omni::sized<omni_linear_query>();
  query.numerics = static_cast<uint16_t>(problem.numerics);
  query.x_type = static_cast<uint16_t>(problem.x_type);
  query.y_type = static_cast<uint16_t>(problem.y_type);
  query.epilogue = problem.bias.empty() ? OMNI_EPILOGUE_NONE : OMNI_EPILOGUE_BIAS;
  query.max_m = max_m;
  query.weights = problem.weights.layout;
  query.kernel = kernel.c_str();
  return query;
}

void check_row(const Session& session, const LinearProblem& problem, const std::vector<uint32_t>& ms, const Row& row,
               const GoldenSource& source) {
  require_usable(row);
  LinearRun run(problem, row.name, ms.back());
  const GoldenRows golden = source(run.run(1, session.first_pool()));
  for (const auto& pool : session.pools) {
    for (const uint32_t m : ms) {
      const std::byte* found = run.run(m, *pool);
      expect_rows(golden, found, run.rows(m), fmt::format("M = {}, {} threads", m, pool->threads()));
    }
  }
  for (const uint32_t m : {ms.front(), ms.back()}) {
    expect_rows(golden, run.run_portions(m), run.rows(m), fmt::format("M = {}, N in portions", m));
  }
}

}  // namespace

std::vector<Row> rows_of(const std::string& op) {
  std::vector<Row> rows;
  for (const omni_kernel_info& info : omni::kernels()) {
    if (op == info.op) rows.push_back({info.name, info.isa, info.usable != 0});
  }
  return rows;
}

std::vector<Row> linear_rows_of(const std::string& op, const LinearProblem& problem) {
  // The name says what the listing has no field for: <op>_<class>_<activation>_<weight format>_... Class exact quantises to s8.
  const bool exact = problem.numerics == OMNI_NUMERICS_EXACT;
  const char* numerics = exact ? "exact" : problem.numerics == OMNI_NUMERICS_TORCH ? "torch" : "group";
  const char* activation = exact ? "s8" : problem.x_type == OMNI_DTYPE_F32 ? "f32" : "bf16";
  const uint16_t format = problem.weights.layout.format;
  const char* weights = format == OMNI_FORMAT_W4S ? "w4s" : format == OMNI_FORMAT_W8S ? "w8s" : "tg4";
  const std::string prefix = fmt::format("{}_{}_{}_{}_", op, numerics, activation, weights);
  std::vector<Row> rows = rows_of(op);
  std::erase_if(rows, [&](const Row& row) { return !row.name.starts_with(prefix); });
  return rows;
}

void require_usable(const Row& row) {
  if (!row.usable) throw NotRun("needs tier " + row.tier + ", which this machine lacks or a cap forbids");
}

void repack(omni_repack_args args, const std::string& kernel) {
  const PackTrace trace(kernel);
  omni::repack(args);
  if (!kernel.empty() && trace.served() != kernel) throw NotRun("the library let " + trace.served() + " serve instead");
}

void dequantize(const Weights& weights, omni_order order, const std::string& kernel, const omni::Pool& pool, Buffer* out) {
  const omni_layout& layout = weights.layout;
  out->poison();
  auto args = omni::sized<omni_dequant_args>();
  args.out_type = OMNI_DTYPE_BF16;
  args.order = static_cast<uint16_t>(order);
  args.layout = layout;
  args.codes = weights.codes->data();
  args.codes_bytes = weights.codes->size();
  args.scales = weights.scales->data();
  args.scales_bytes = weights.scales->size();
  args.n1 = layout.n;
  args.k1 = layout.k;
  args.out = out->data();
  args.ld_out = order == OMNI_ORDER_NK ? layout.k : layout.n;
  args.kernel = kernel.c_str();
  args.parallel = pool.parallel();
  omni::dequantize(args);
}

LinearRun::LinearRun(const LinearProblem& problem, const std::string& kernel, uint32_t max_m)
    : problem_(problem),
      plan_(query_of(problem, kernel, max_m)),
      x_(repeated(problem.x, static_cast<size_t>(problem.k() * bytes_of(problem.x_type)),
                  static_cast<size_t>(problem.rows) + max_m)),
      x_scales_(static_cast<size_t>(problem.rows) + max_m),
      workspace_(plan_.workspace_size(max_m)),
      scratch_(plan_.scratch_size(max_m)),
      y_((static_cast<size_t>(problem.rows) + max_m) * static_cast<size_t>(problem.n() * bytes_of(problem.y_type))) {
  for (size_t i = 0; i < x_scales_.size() && !problem.x_scales.empty(); ++i) {
    x_scales_[i] = problem.x_scales[i % problem.x_scales.size()];
  }
}

omni_linear_args LinearRun::arguments(uint32_t m, int64_t batch, const omni::Pool* pool) {
  auto args = omni::sized<omni_linear_args>();
  args.m = m;
  args.x = x_.data() + batch * m * problem_.k() * bytes_of(problem_.x_type);
  args.ldx = problem_.k();
  args.x_scales = x_scales_.data() + batch * m;
  args.bias = problem_.bias.empty() ? nullptr : problem_.bias.data();
  args.k_permutation = problem_.k_permutation;
  args.codes = problem_.weights.codes->data();
  args.codes_bytes = problem_.weights.codes->size();
  args.scales = problem_.weights.scales->data();
  args.scales_bytes = problem_.weights.scales->size();
  args.y = y_.data() + batch * m * problem_.n() * bytes_of(problem_.y_type);
  args.ldy = problem_.n();
  args.workspace = workspace_.data();
  args.workspace_bytes = workspace_.size();
  args.scratch = scratch_.data();
  args.scratch_bytes = scratch_.size();
  args.parallel = pool != nullptr ? pool->parallel() : nullptr;
  return args;
}

const std::byte* LinearRun::run(uint32_t m, const omni::Pool& pool) {
  y_.poison();
  workspace_.poison();
  for (int64_t batch = 0; batch * m < problem_.rows; ++batch) plan_.run(arguments(m, batch, &pool));
  return y_.data();
}

const std::byte* LinearRun::run_portions(uint32_t m) {
  constexpr int64_t kWidths[] = {1, 17, 64, 3, 129, 1000};  // channels; no multiple of anything in particular
  y_.poison();
  workspace_.poison();
  scratch_.poison();
  for (int64_t batch = 0; batch * m < problem_.rows; ++batch) {
    const omni_linear_args args = arguments(m, batch, nullptr);
    plan_.prepare(args);
    int64_t from = 0;
    for (size_t i = 0; from < problem_.n(); ++i) {
      const int64_t to = std::min(problem_.n(), from + kWidths[i % std::size(kWidths)]);
      plan_.run_portion(args, from, to);
      from = to;
    }
  }
  return y_.data();
}

void check_linear(const Session& session, const LinearProblem& problem, const LinearRange& how, const std::string& what,
                  const GoldenSource& golden, FileRecord* record) {
  for (const char* op : {"gemv", "gemm"}) {
    const std::vector<uint32_t> ms = op == std::string_view("gemv") ? std::vector<uint32_t>{1} : how.ms;
    for (const Row& row : linear_rows_of(op, problem)) {
      if (row.tier == "portable" && !how.portable) {
        record->add(what, row.name, Outcome::kNotRun, "slow at this size: --exhaustive runs it");
        continue;
      }
      record->attempt(what, row.name, [&] { check_row(session, problem, ms, row, golden); });
    }
  }
}

std::vector<uint32_t> every_m() {
  std::vector<uint32_t> ms(16);
  std::iota(ms.begin(), ms.end(), 1U);
  return ms;
}

}  // namespace omnibench
