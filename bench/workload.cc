// SPDX-License-Identifier: Apache-2.0
#include "bench/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/machine.h"
#include "bench/ops/op.h"

namespace omnibench {

size_t align_to_line(size_t bytes) { return (bytes + 63) / 64 * 64; }

void check(omni_status status, const char* what) {
  if (status != OMNI_OK) throw std::runtime_error(fmt::format("{}: {}: {}", what, omni_status_name(status), omni_last_error()));
}

Block::Block(size_t bytes) {
  memory_.size = sizeof memory_;
  check(omni_packed_alloc(std::max<size_t>(bytes, 1), OMNI_ALLOC_DEFAULT, &memory_), "omni_packed_alloc");
}

Block::~Block() { omni_packed_free(&memory_); }

Block::Block(Block&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}

Pool::Pool(uint32_t threads) {
  check(omni_pool_create(threads, &pool_), "omni_pool_create");
  parallel_.size = sizeof parallel_;
  check(omni_pool_parallel(pool_, &parallel_), "omni_pool_parallel");
}

Pool::~Pool() { omni_pool_destroy(pool_); }

void Pool::run(int64_t count, const std::function<void(int64_t)>& task) const {
  const omni_task call = [](void* context, int64_t index) { (*static_cast<const std::function<void(int64_t)>*>(context))(index); };
  parallel_.parallel_for(parallel_.context, count, call, const_cast<std::function<void(int64_t)>*>(&task));
}

double cold_rotation_bytes() { return 1.25 * static_cast<double>(last_level_cache() + second_level_caches()); }

int64_t copies_for(double moved, double allocated) {
  const double available = 0.5 * static_cast<double>(available_memory());
  if (allocated > available) {
    throw DoesNotFit(
        fmt::format("the operands need {:.1f} GB, half of the available memory is {:.1f} GB", allocated / 1e9, available / 1e9));
  }
  const auto wanted = std::max<int64_t>(2, static_cast<int64_t>(std::ceil(cold_rotation_bytes() / moved)));
  return std::min(wanted, static_cast<int64_t>(available / allocated));
}

Workload::Workload(const Case& c, const Pool& pool) : case_(c), pool_(pool), parts_(parts_of(c)) {
  double rotated = 0;
  for (const Part& part : parts_) {
    offsets_.push_back(stride_);
    fixed_.push_back(nullptr);
    if (part.rotates) {
      // Five lines apart: operands of 4096 bytes behind each other would alias, loads of one with stores to the other.
      stride_ += align_to_line(part.bytes) + 5 * 64;
      rotated += static_cast<double>(part.bytes);
    } else {
      own_blocks_.emplace_back(part.bytes);
      fixed_.back() = own_blocks_.back().data();
    }
  }
  if (stride_ == 0) {
    copies_ = 1;
    block_ = Block(1);
    return;
  }
  copies_ = static_cast<size_t>(c.hot ? 1 : copies_for(rotated, static_cast<double>(stride_)));
  block_ = Block(copies_ * stride_);
}

void Workload::make_copies(const std::function<void()>& fill) {
  fill();
  for (size_t i = 1; i < copies_; ++i) std::memcpy(block_.data() + i * stride_, block_.data(), stride_);
}

std::string Workload::pages() const {
  const omni_page_kind kind = stride_ > 0 ? block_.pages() : own_blocks_[0].pages();
  if (kind == OMNI_PAGES_TRANSPARENT) return "transparent 2 MiB";
  return kind == OMNI_PAGES_EXPLICIT ? "explicit 2 MiB" : "4 KiB";
}

std::unique_ptr<Arm> Workload::peer(const std::string& arm, std::string /*name*/) {
  throw std::runtime_error(fmt::format("{} has no peer {}", case_.op, arm));
}

void Workload::spoil_output() const { std::memset(data(copy(0), output_part()), 0xff, parts_[output_part()].bytes); }

Plan take_plan(omni_status status, omni_plan* plan, const char* what) {
  if (status == OMNI_ERR_NO_KERNEL) throw Refused(omni_last_error());
  check(status, what);
  return Plan(plan, omni_plan_destroy);
}

void describe(const omni_plan* plan, bool rows, Runner& runner) {
  omni_plan_info info{};
  info.size = sizeof info;
  check(omni_plan_get_info(plan, &info), "omni_plan_get_info");
  const bool second = rows && info.kernel_rows != nullptr && info.kernel_rows[0] != '\0';
  runner.kernel = second ? info.kernel_rows : info.kernel;
  runner.detail = fmt::format("{} ({})", runner.kernel, info.code);
}

}  // namespace omnibench
