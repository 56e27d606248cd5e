// SPDX-License-Identifier: Apache-2.0
// What our workers share: the protocol of docs/workers.md, and a pool with the number of threads that the harness asks for.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "omni/omni.h"

namespace ref::worker {

// There is nothing for the case: reported, no failure.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One case, set up.
class Served {
 public:
  virtual ~Served() = default;
  // What runs, for the report.
  virtual std::string detail() const = 0;
  // Of memory, that one call reads; 0: not held to any.
  virtual double bytes() const { return 0; }
  // Nanoseconds of `calls` calls, after one that is not timed.
  virtual double run(int64_t calls) = 0;
};

// Answers each line of `in` until it ends. `make` sets up the case of a question; what it throws is answered.
void serve(std::istream& in, std::ostream& out, const std::function<std::unique_ptr<Served>(const nlohmann::json&)>& make);

class Pool {
 public:
  explicit Pool(uint32_t threads);
  ~Pool() { omni_pool_destroy(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  const omni_parallel* parallel() const { return &parallel_; }

 private:
  omni_pool* pool_ = nullptr;
  omni_parallel parallel_{};
};

// Of --kv: "bf16", "f32" or "int8".
omni_dtype cache_type(const std::string& name);

}  // namespace ref::worker
