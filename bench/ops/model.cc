// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/model.h"

#include <fmt/format.h>

#include <cstring>

namespace omnibench {
namespace {

class Model final : public Workload {
 public:
  Model(const Case& c, const Pool& pool) : Workload(c, pool) {
    make_copies([this] { std::memset(first<uint8_t>(0), 1, parts()[0].bytes); });  // pages that are there, for the read arm
  }

  std::unique_ptr<Runner> runner(const OurChoice& /*choice*/) override {
    throw Refused(fmt::format("models run as workers: --arms +name=cmd:'omni-{}-worker MODEL'", the_case().op));
  }

  void write_operands(const FileWriter& /*file*/) override {}

  Verification compare(const void* /*output*/, size_t /*bytes*/, bool /*f32*/, const std::string& how) override {
    throw std::runtime_error("unknown comparison \"" + how + "\"");
  }
};

}  // namespace

std::vector<Part> model_parts(const Case& c) { return {{"read", static_cast<size_t>(c.size(1)) << 20, true}}; }

std::unique_ptr<Workload> make_model(const Case& c, const Pool& pool) { return std::make_unique<Model>(c, pool); }

}  // namespace omnibench
