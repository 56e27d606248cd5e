// SPDX-License-Identifier: Apache-2.0
// The C entries of omni/parallel.h, and the process-wide pool behind a NULL `parallel`.
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "kernels/api/error.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/parallel/pool.h"
#include "omni/parallel.h"

struct omni_pool {
  okl::Pool pool;
};

namespace okl {
namespace {

// The omni_parallel that callers hold has no pool in it, so that omni_set_num_threads() can replace the pool under them.
struct DefaultPool {
  std::atomic<int64_t> regions = 0;  // running ones; negative while the pool is being replaced
  std::atomic<Pool*> pool = nullptr;
  std::mutex mutex;                     // creation and replacement
  std::atomic<uint32_t> requested = 0;  // omni_set_num_threads; 0: not set
};

constexpr int64_t kReplacing = INT64_MIN / 2;

constinit DefaultPool process;

[[gnu::constructor]] void register_fork_handlers() {
  pthread_atfork([] { process.mutex.lock(); }, [] { process.mutex.unlock(); },
                 [] {
                   process.regions.store(0, std::memory_order_relaxed);  // of threads that do not exist in the child
                   process.mutex.unlock();
                 });
}

void run_alone(int64_t count, omni_task task, void* context) {
  for (int64_t i = 0; i < count; ++i) task(context, i);
}

void pool_parallel_for(void* context, int64_t count, omni_task task, void* task_context) {
  static_cast<Pool*>(context)->parallel_for(count, task, task_context);
}

void default_parallel_for(void* /*context*/, int64_t count, omni_task task, void* task_context) {
  if (process.regions.fetch_add(1, std::memory_order_acquire) >= 0) {
    process.pool.load(std::memory_order_relaxed)->parallel_for(count, task, task_context);
  } else {
    run_alone(count, task, task_context);
  }
  process.regions.fetch_sub(1, std::memory_order_release);
}

omni_status check_thread_count(uint32_t threads) {
  if (threads <= kMostThreads) return OMNI_OK;
  return fail(OMNI_ERR_RANGE, "threads is %u, the most is %u", threads, kMostThreads);
}

omni_status check_parallel(const omni_parallel* out) {
  if (out == nullptr) return fail(OMNI_ERR_NULL, "out is NULL");
  if (out->size < sizeof *out) return fail(OMNI_ERR_STRUCT_SIZE, "out->size is %u, expected at least %zu", out->size, sizeof *out);
  return OMNI_OK;
}

void fill(omni_parallel* out, uint32_t threads, void* context, void (*parallel_for)(void*, int64_t, omni_task, void*)) {
  out->threads = threads;
  out->context = context;
  out->parallel_for = parallel_for;
}

uint32_t wanted_threads(uint32_t requested) {
  if (requested != 0) return requested;
  const uint32_t from_environment = settings().num_threads;
  return from_environment != 0 ? from_environment : default_thread_count();
}

Pool* make_pool(uint32_t threads) {
  try {
    return new Pool(threads, default_thread_count());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The process-wide pool; nullptr when memory ran out. Fewer workers than asked for are no failure here: one thread always serves.
Pool* default_pool() {
  if (Pool* pool = process.pool.load(std::memory_order_acquire); pool != nullptr) return pool;
  const std::lock_guard lock(process.mutex);
  Pool* pool = process.pool.load(std::memory_order_relaxed);
  if (pool == nullptr) {
    pool = make_pool(wanted_threads(process.requested));
    process.pool.store(pool, std::memory_order_release);
  }
  return pool;
}

}  // namespace
}  // namespace okl

extern "C" {

omni_status omni_pool_create(uint32_t threads, omni_pool** pool) {
  if (const omni_status status = okl::ensure_initialised(); status != OMNI_OK) return status;
  if (pool == nullptr) return okl::fail(OMNI_ERR_NULL, "pool is NULL");
  if (const omni_status status = okl::check_thread_count(threads); status != OMNI_OK) return status;
  try {
    const uint32_t cap = okl::default_thread_count();
    const uint32_t wanted = threads == 0 ? cap : threads;
    auto created = std::unique_ptr<omni_pool>(new omni_pool{okl::Pool(wanted, cap)});
    if (created->pool.running() < std::min(wanted, cap)) {
      return okl::fail(OMNI_ERR_OUT_OF_MEMORY, "only %u of %u threads could be started", created->pool.running(),
                       std::min(wanted, cap));
    }
    *pool = created.release();
    return okl::succeed();
  } catch (const std::bad_alloc&) {
    return okl::fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a pool of %u threads", threads);
  }
}

void omni_pool_destroy(omni_pool* pool) { delete pool; }

omni_status omni_pool_parallel(omni_pool* pool, omni_parallel* out) {
  if (pool == nullptr) return okl::fail(OMNI_ERR_NULL, "pool is NULL");
  if (const omni_status status = okl::check_parallel(out); status != OMNI_OK) return status;
  okl::fill(out, pool->pool.threads(), &pool->pool, okl::pool_parallel_for);
  return okl::succeed();
}

omni_status omni_default_parallel(omni_parallel* out) {
  if (const omni_status status = okl::ensure_initialised(); status != OMNI_OK) return status;
  if (const omni_status status = okl::check_parallel(out); status != OMNI_OK) return status;
  okl::Pool* const pool = okl::default_pool();
  if (pool == nullptr) return okl::fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for the process-wide pool");
  okl::fill(out, pool->threads(), nullptr, okl::default_parallel_for);
  return okl::succeed();
}

uint32_t omni_num_threads(void) {
  okl::ensure_initialised();
  return okl::wanted_threads(okl::process.requested);
}

omni_status omni_set_num_threads(uint32_t threads) {
  if (const omni_status status = okl::ensure_initialised(); status != OMNI_OK) return status;
  if (const omni_status status = okl::check_thread_count(threads); status != OMNI_OK) return status;
  okl::DefaultPool& process = okl::process;
  const std::lock_guard lock(process.mutex);
  okl::Pool* const old = process.pool.load(std::memory_order_relaxed);
  const uint32_t wanted = okl::wanted_threads(threads);
  if (old == nullptr || old->threads() == wanted) {
    process.requested = threads;
    return okl::succeed();
  }
  int64_t none = 0;
  if (!process.regions.compare_exchange_strong(none, okl::kReplacing, std::memory_order_acquire)) {
    return okl::fail(OMNI_ERR_STATE, "threads cannot be set while %lld parallel regions run", static_cast<long long>(none));
  }
  // The new pool first: whoever holds an omni_parallel must always find one.
  okl::Pool* const created = okl::make_pool(wanted);
  if (created != nullptr) process.pool.store(created, std::memory_order_release);
  process.regions.fetch_sub(okl::kReplacing, std::memory_order_release);
  if (created == nullptr) return okl::fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a pool of %u threads", wanted);
  delete old;
  process.requested = threads;
  return okl::succeed();
}

}  // extern "C"
