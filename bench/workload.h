// SPDX-License-Identifier: Apache-2.0
// The operands of a case, in as many copies as a cold case rotates through, and the pool that every arm of ours runs on.
#ifndef OMNI_BENCH_WORKLOAD_H
#define OMNI_BENCH_WORKLOAD_H

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/arm.h"
#include "bench/cases.h"
#include "omni/omni.h"

namespace omnibench {

/// Throws with the status name and the library's text.
void check(omni_status status, const char* what);

/// A block of omni_packed_alloc.
class Block {
 public:
  Block() = default;
  explicit Block(size_t bytes);
  ~Block();
  Block(Block&& other) noexcept;
  Block& operator=(Block&& other) noexcept;
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  [[nodiscard]] uint8_t* data() const { return static_cast<uint8_t*>(memory_.data); }
  [[nodiscard]] size_t bytes() const { return memory_.bytes; }
  [[nodiscard]] omni_page_kind pages() const { return memory_.pages; }

 private:
  omni_packed_memory memory_{};
};

/// A pool of the library with a fixed number of threads.
class Pool {
 public:
  explicit Pool(uint32_t threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  [[nodiscard]] const omni_parallel* parallel() const { return &parallel_; }
  [[nodiscard]] uint32_t threads() const { return parallel_.threads; }
  /// Calls task(i) for i in [0, count).
  void run(int64_t count, const std::function<void(int64_t)>& task) const;

 private:
  omni_pool* pool_ = nullptr;
  omni_parallel parallel_{};
};

using Plan = std::unique_ptr<omni_plan, void (*)(omni_plan*)>;

/// How one of our arms chooses its kernel; empty strings choose nothing.
struct OurChoice {
  std::string kernel;   ///< a registry name to force
  std::string max_isa;  ///< a tier to cap at
  [[nodiscard]] const char* kernel_or_null() const { return kernel.empty() ? nullptr : kernel.c_str(); }
  [[nodiscard]] const char* max_isa_or_null() const { return max_isa.empty() ? nullptr : max_isa.c_str(); }
};

/// The case is beyond the memory of this machine.
struct DoesNotFit : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// One of our kernels, ready to run on the operands of a workload.
class Runner {
 public:
  virtual ~Runner() = default;
  /// One call with copy `copy` of what rotates.
  virtual void run(const uint8_t* copy) = 0;
  /// Around a sample, never inside it.
  virtual void begin() {}
  virtual void end() {}

  std::string kernel;  ///< that serves; "" when the entry does not say
  std::string detail;  ///< kernel and how its code was made
};

/**
 * Operands and reference of one case; each operation derives its own. What rotates (weights, caches of keys) is in as many copies
 * as a cold case needs: every call takes the copy that was used longest ago, whichever arm used it. What does not rotate is there
 * once: it has just been produced or is about to be used, so it is warm in real use, too.
 */
class Workload {
 public:
  Workload(const Case& c, const Pool& pool);
  virtual ~Workload() = default;
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  [[nodiscard]] const Case& the_case() const { return case_; }
  [[nodiscard]] const Pool& pool() const { return pool_; }
  [[nodiscard]] const std::vector<Part>& parts() const { return parts_; }
  [[nodiscard]] size_t copies() const { return copies_; }
  [[nodiscard]] std::string pages() const;
  /// The next copy of the rotation.
  const uint8_t* next() {
    cursor_ = cursor_ + 1 < copies_ ? cursor_ + 1 : 0;
    return copy(cursor_);
  }
  [[nodiscard]] const uint8_t* copy(size_t index) const { return block_.data() + index * stride_; }
  /// Part `part` of a copy; the same for every copy when the part does not rotate.
  [[nodiscard]] uint8_t* data(const uint8_t* copy, size_t part) const {
    return fixed_[part] != nullptr ? fixed_[part] : const_cast<uint8_t*>(copy) + offsets_[part];
  }
  /// The same of the first copy, as elements.
  template <class Element>
  [[nodiscard]] Element* first(size_t part) const {
    return reinterpret_cast<Element*>(data(copy(0), part));
  }

  /// Our implementation. Throws Refused when this machine has no kernel for it.
  virtual std::unique_ptr<Runner> runner(const OurChoice& choice) = 0;
  /// A peer of Op::peers.
  virtual std::unique_ptr<Arm> peer(const std::string& arm, std::string name);
  /// Before verification: what is not written must show. Fills the output of the first copy with 0xff bytes; an operation that
  /// works in place puts its input back instead.
  virtual void spoil_output() const;
  /// Compares the output of the first copy, as our runner left it. Throws WrongOutput naming the first element that differs.
  Verification check_output() {
    return compare(data(copy(0), output_part()), parts_[output_part()].bytes, false, own_comparison());
  }
  /// Compares an output of a peer. `how` is a word of docs/workers.md; throws std::runtime_error for one that the operation lacks.
  virtual Verification compare(const void* output, size_t bytes, bool f32, const std::string& how) = 0;
  /// The word for what our own output must be: the bits, usually.
  [[nodiscard]] virtual std::string own_comparison() const { return "bits"; }
  /// Which part a call writes.
  [[nodiscard]] virtual size_t output_part() const { return parts_.size() - 1; }
  /// Writes operands for a worker: `file(name, data, bytes)` stores one and adds its path to the question under that name.
  using FileWriter = std::function<void(const char* name, const void* data, size_t bytes)>;
  virtual void write_operands(const FileWriter& file) = 0;

 protected:
  /// To be called by the constructor of each operation: fills the first copy by `fill`, then makes the others of it.
  void make_copies(const std::function<void()>& fill);

 private:
  const Case case_;
  const Pool& pool_;
  std::vector<Part> parts_;
  std::vector<size_t> offsets_;
  std::vector<uint8_t*> fixed_;
  size_t stride_ = 0, copies_ = 1, cursor_ = 0;
  Block block_;  ///< of all copies: a block is at least one 2 MiB page, and a small shape takes 150,000 copies
  std::vector<Block> own_blocks_;
};

/// Takes ownership; throws Refused for "no kernel on this machine", std::runtime_error for anything else that is no success.
Plan take_plan(omni_status status, omni_plan* plan, const char* what);
/// Fills kernel and detail of a runner from its plan. A plan for more than one row may hold two kernels: `rows` says which is
/// meant.
void describe(const omni_plan* plan, bool rows, Runner& runner);

/// Copies that a cold rotation needs when a call moves `moved` bytes of one and each takes `allocated` bytes: more than 1.25 times
/// all caches that could keep them, at least two, and no more than half of the available memory holds. Throws when not one fits.
int64_t copies_for(double moved, double allocated);
/// Rounded up to whole cache lines, so that copies behind each other never share one.
size_t align_to_line(size_t bytes);
/// Bytes that a rotation must exceed.
double cold_rotation_bytes();

}  // namespace omnibench
#endif
