// SPDX-License-Identifier: Apache-2.0
/**
 * @file omni.hpp  A thin C++20 wrapper of omni.h: ownership by RAII, a status other than OMNI_OK as an exception.
 *
 * Header only and no part of the ABI: it is compiled into the client. Nothing here hides a C struct; the functions of omni.h and
 * these types mix freely. Thread safety is that of the C entry behind each call.
 */
#ifndef OMNI_OMNI_HPP
#define OMNI_OMNI_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "omni/omni.h"

namespace omni {

/** A failed call: what() is the status name and the line of omni_last_error(). */
class Error : public std::runtime_error {
 public:
  /** `detail`: the line of omni_last_error(). */
  Error(omni_status status, const char* detail)
      : std::runtime_error(std::string(omni_status_name(status)) + ": " + detail), status_(status) {}
  /** The status that the C entry returned. */
  [[nodiscard]] omni_status status() const noexcept { return status_; }

 private:
  omni_status status_;
};

/** Throws Error unless `status` is OMNI_OK. */
inline void check(omni_status status) {
  if (status != OMNI_OK) throw Error(status, omni_last_error());
}

/** A zeroed struct of the C interface whose `size` is filled in: `auto query = omni::sized<omni_linear_query>();`. */
template <typename Struct>
[[nodiscard]] constexpr Struct sized() noexcept {
  Struct value{};
  value.size = sizeof(Struct);
  return value;
}

/** A layout id; see omni_layout_init(). */
[[nodiscard]] inline omni_layout make_layout(omni_format format, int64_t n, int64_t k, uint32_t group, omni_dtype scale_type) {
  auto layout = sized<omni_layout>();
  check(omni_layout_init(&layout, format, n, k, group, scale_type));
  return layout;
}

/** Reads the text of layout_text(). */
[[nodiscard]] inline omni_layout parse_layout(const std::string& text) {
  auto layout = sized<omni_layout>();
  check(omni_layout_from_text(text.c_str(), &layout));
  return layout;
}

/** The layout id as text; see omni_layout_to_text(). */
[[nodiscard]] inline std::string layout_text(const omni_layout& layout) {
  char text[96];
  check(omni_layout_to_text(&layout, text, sizeof text));
  return text;
}

/** Bytes of the packed codes. */
[[nodiscard]] inline size_t packed_size(const omni_layout& layout) {
  size_t bytes = 0;
  check(omni_packed_size(&layout, &bytes));
  return bytes;
}

/** Bytes of the scale-and-zero array. */
[[nodiscard]] inline size_t scales_size(const omni_layout& layout) {
  size_t bytes = 0;
  check(omni_scales_size(&layout, &bytes));
  return bytes;
}

/** Memory for packed weights, on 2 MiB pages where the system grants them. Movable, zeroed, freed by the destructor. */
class PackedMemory {
 public:
  PackedMemory() = default;
  /** Allocates; `flags` are OMNI_ALLOC_*. */
  explicit PackedMemory(size_t bytes, uint32_t flags = OMNI_ALLOC_DEFAULT) { check(omni_packed_alloc(bytes, flags, &memory_)); }
  /** Leaves `other` empty. */
  PackedMemory(PackedMemory&& other) noexcept : memory_(std::exchange(other.memory_, sized<omni_packed_memory>())) {}
  /** Swaps, so that `other` frees what this held. */
  PackedMemory& operator=(PackedMemory&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  PackedMemory(const PackedMemory&) = delete;
  PackedMemory& operator=(const PackedMemory&) = delete;
  ~PackedMemory() { omni_packed_free(&memory_); }

  /** First byte; NULL when empty. */
  [[nodiscard]] void* data() const noexcept { return memory_.data; }
  /** Bytes as asked for. */
  [[nodiscard]] size_t size() const noexcept { return memory_.bytes; }
  /** The whole block. */
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(memory_.data), memory_.bytes}; }
  /** The block as elements of T; a remainder smaller than T is left out. */
  template <typename T>
  requires std::is_trivially_copyable_v<T>
  [[nodiscard]] std::span<T> as() const noexcept { return {static_cast<T*>(memory_.data), memory_.bytes / sizeof(T)}; }
  /** Which pages were granted. */
  [[nodiscard]] omni_page_kind pages() const noexcept { return memory_.pages; }

 private:
  omni_packed_memory memory_ = sized<omni_packed_memory>();
};

/** The fork-join pool of the library; 0 threads asks for the default of this machine. Destroy it when no region runs. */
class Pool {
 public:
  /** Starts the threads; the caller of a region is one of them. */
  explicit Pool(uint32_t threads = 0) {
    omni_pool* pool = nullptr;
    check(omni_pool_create(threads, &pool));
    pool_.reset(pool);
    parallel_.size = sizeof parallel_;
    check(omni_pool_parallel(pool, &parallel_));
  }
  /** For the `parallel` member of argument structs; valid as long as the pool. */
  [[nodiscard]] const omni_parallel* parallel() const noexcept { return &parallel_; }
  /** Threads of a region, its caller included. */
  [[nodiscard]] uint32_t threads() const noexcept { return parallel_.threads; }

 private:
  struct Destroy {
    void operator()(omni_pool* pool) const noexcept { omni_pool_destroy(pool); }
  };
  std::unique_ptr<omni_pool, Destroy> pool_;
  omni_parallel parallel_{};
};

/**
 * A callable as a parallel_for: `function(count, run)` must call `run(i)` exactly once for every i in [0, count), from any threads,
 * and return when all calls have returned. It must not throw: an exception may not cross the C interface and ends the program.
 */
template <typename Function>
class ParallelFor {
 public:
  /** `threads`: the most threads that `function` uses at once. */
  ParallelFor(uint32_t threads, Function function) : function_(std::move(function)) {
    parallel_.size = sizeof parallel_;
    parallel_.threads = threads;
    parallel_.context = this;
    parallel_.parallel_for = [](void* context, int64_t count, omni_task task, void* task_context) noexcept {
      static_cast<ParallelFor*>(context)->function_(count, [=](int64_t index) { task(task_context, index); });
    };
  }
  // The C struct points at this object, so it stays where it is.
  ParallelFor(const ParallelFor&) = delete;
  ParallelFor& operator=(const ParallelFor&) = delete;
  ~ParallelFor() = default;

  /** For the `parallel` member of argument structs; valid as long as this object. */
  [[nodiscard]] const omni_parallel* parallel() const noexcept { return &parallel_; }

 private:
  Function function_;
  omni_parallel parallel_{};
};

/** Owns a plan of the C interface. */
struct DestroyPlan {
  /** Releases it. */
  void operator()(omni_plan* plan) const noexcept { omni_plan_destroy(plan); }
};
/** A plan handle that is released with its owner. */
using PlanHandle = std::unique_ptr<omni_plan, DestroyPlan>;

/** What a plan is; see omni_plan_get_info(). */
[[nodiscard]] inline omni_plan_info plan_info(const omni_plan* plan) {
  auto info = sized<omni_plan_info>();
  check(omni_plan_get_info(plan, &info));
  return info;
}

/** A chosen and generated kernel of y = x * W^T. Movable; a const Plan may be used from any number of threads at once. */
class Plan {
 public:
  /** Chooses and generates; see omni_select(). */
  explicit Plan(const omni_linear_query& query) {
    omni_plan* plan = nullptr;
    check(omni_select(&query, &plan));
    plan_.reset(plan);
  }
  /** The kernel, why it was chosen, and its code. */
  [[nodiscard]] omni_plan_info info() const { return plan_info(plan_.get()); }
  /** Bytes of workspace for `m` rows. */
  [[nodiscard]] size_t workspace_size(uint32_t m) const {
    size_t bytes = 0;
    check(omni_workspace_size(plan_.get(), m, &bytes));
    return bytes;
  }
  /** Bytes of scratch that each run_portion() of m rows needs for itself. */
  [[nodiscard]] size_t scratch_size(uint32_t m) const {
    size_t bytes = 0;
    check(omni_scratch_size(plan_.get(), m, &bytes));
    return bytes;
  }
  /** See omni_run(). */
  void run(const omni_linear_args& args) const { check(omni_run(plan_.get(), &args)); }
  /** See omni_prepare(). */
  void prepare(const omni_linear_args& args) const { check(omni_prepare(plan_.get(), &args)); }
  /** See omni_run_portion(). */
  void run_portion(const omni_linear_args& args, int64_t n0, int64_t n1) const {
    check(omni_run_portion(plan_.get(), &args, n0, n1));
  }
  /** The handle, still owned by this object. */
  [[nodiscard]] const omni_plan* get() const noexcept { return plan_.get(); }

 private:
  PlanHandle plan_;
};

/**
 * A chosen kernel of a row operation, whose entries in the C interface are `Select` and `Run`. Movable; a const plan may be used
 * from any number of threads at once.
 */
template <auto Select, auto Run>
class RowPlan {
 public:
  /** Chooses; `query` is the struct that Select takes. */
  template <typename Query>
  explicit RowPlan(const Query& query) {
    omni_plan* plan = nullptr;
    check(Select(&query, &plan));
    plan_.reset(plan);
  }
  /** Runs; `args` is the struct that Run takes. */
  template <typename Args>
  void run(const Args& args) const {
    check(Run(plan_.get(), &args));
  }
  /** The kernel and why it was chosen. */
  [[nodiscard]] omni_plan_info info() const { return plan_info(plan_.get()); }
  /** The handle, still owned by this object. */
  [[nodiscard]] const omni_plan* get() const noexcept { return plan_.get(); }

 private:
  PlanHandle plan_;
};

/** See omni_quantize_run(). */
using Quantize = RowPlan<omni_quantize_select, omni_quantize_run>;
/** See omni_rmsnorm_run(). */
using RmsNorm = RowPlan<omni_rmsnorm_select, omni_rmsnorm_run>;
/** See omni_headgate_run(). */
using HeadGate = RowPlan<omni_headgate_select, omni_headgate_run>;
/** See omni_geglu_run(). */
using Geglu = RowPlan<omni_geglu_select, omni_geglu_run>;
/** See omni_swiglu_run(). */
using Swiglu = RowPlan<omni_swiglu_select, omni_swiglu_run>;
/** See omni_headnorm_run(). */
using HeadNorm = RowPlan<omni_headnorm_select, omni_headnorm_run>;
/** See omni_layernorm_run(). */
using LayerNorm = RowPlan<omni_layernorm_select, omni_layernorm_run>;
/** See omni_activation_run(). */
using Activation = RowPlan<omni_activation_select, omni_activation_run>;
/** See omni_rope_run(). */
using Rope = RowPlan<omni_rope_select, omni_rope_run>;
/** See omni_gather_run(). */
using Gather = RowPlan<omni_gather_select, omni_gather_run>;

/** Grouped-query attention of one shape, for any number of layers and sequences at once. */
class Attention : public RowPlan<omni_attention_select, omni_attention_run> {
 public:
  using RowPlan::RowPlan;
  /** Bytes of workspace for `m` rows. */
  [[nodiscard]] size_t workspace_size(uint32_t m) const {
    size_t bytes = 0;
    check(omni_attention_workspace_size(get(), m, &bytes));
    return bytes;
  }
  /** See omni_attention_append(). */
  void append(const omni_attention_append_args& args) const { check(omni_attention_append(get(), &args)); }
};

/** See omni_depthwise_run(). */
using Depthwise = RowPlan<omni_depthwise_select, omni_depthwise_run>;

/** A convolution over rows of time, transposed ones among them: see omni_conv1d_run(). */
class Conv1d : public RowPlan<omni_conv1d_select, omni_conv1d_run> {
 public:
  using RowPlan::RowPlan;
  /** Bytes of workspace for `m` output rows. */
  [[nodiscard]] size_t workspace_size(uint32_t m) const {
    size_t bytes = 0;
    check(omni_conv1d_workspace_size(get(), m, &bytes));
    return bytes;
  }
};

/** Slots of a ring for a window and chunks of up to most_rows rows; see omni_kv_cache_ring(). */
[[nodiscard]] inline int64_t kv_cache_ring(int64_t window, int64_t most_rows) {
  int64_t capacity = 0;
  check(omni_kv_cache_ring(window, most_rows, &capacity));
  return capacity;
}

/** Bytes of a cache; see omni_kv_cache_size(). */
[[nodiscard]] inline size_t kv_cache_size(omni_dtype type, uint32_t kv_heads, uint32_t head_dim, int64_t capacity) {
  size_t bytes = 0;
  check(omni_kv_cache_size(type, kv_heads, head_dim, capacity, &bytes));
  return bytes;
}

/** See omni_repack(). */
inline void repack(const omni_repack_args& args) { check(omni_repack(&args)); }
/** See omni_pack_scales(). */
inline void pack_scales(const omni_scales_args& args) { check(omni_pack_scales(&args)); }
/** See omni_convert_scales(). */
inline void convert_scales(const omni_convert_scales_args& args) { check(omni_convert_scales(&args)); }
/** See omni_dequantize(). */
inline void dequantize(const omni_dequant_args& args) { check(omni_dequantize(&args)); }

/** The machine that selection sees. */
[[nodiscard]] inline omni_machine machine() {
  auto machine = sized<omni_machine>();
  check(omni_get_machine(&machine));
  return machine;
}

/** Every kernel of the registry. */
[[nodiscard]] inline std::vector<omni_kernel_info> kernels() {
  std::vector<omni_kernel_info> rows(omni_kernel_count(), sized<omni_kernel_info>());
  for (size_t index = 0; index < rows.size(); ++index) check(omni_kernel_get(index, &rows[index]));
  return rows;
}

}  // namespace omni

#endif
