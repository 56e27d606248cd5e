// SPDX-License-Identifier: Apache-2.0
// omni-bench worker: another build of this program becomes an arm, so that two revisions are measured interleaved in one run.
#include <fmt/format.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/arms/arms.h"
#include "bench/git_revision.h"
#include "bench/ops/op.h"
#include "bench/run.h"

namespace omnibench {
namespace {

using nlohmann::json;

/// Everything that a served case needs, in the order of their dependence.
struct Served {
  Pool pool;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Arm> arm;
  Served(const Case& c, const std::string& isa) : pool(c.threads), workload(op_of(c).make(c, pool)) {
    arm = make_our_arm("omni", *workload, {"", isa});
    arm->prepare();
  }
};

Case case_of(const json& question) {
  Case c;
  c.op = question.at("op");
  for (const std::string& size : op_of(c).sizes) c.shape.sizes.push_back(question.at(size));
  c.shape.name = fmt::format("{}", fmt::join(c.shape.sizes, "x"));
  c.shape.seed = question.at("seed");
  c.m = question.at("m");
  c.group = question.at("group");
  c.variant = question.at("class");
  c.hot = question.at("cache") == "hot";
  c.threads = question.at("threads");
  return c;
}

json answer(const std::string& line, const std::string& isa, std::unique_ptr<Served>& served) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space);
  const std::string rest = space < line.size() ? line.substr(space + 1) : "";
  if (word == "case") {
    served.reset();
    served = std::make_unique<Served>(case_of(json::parse(rest)), isa);
    return {{"ok", true},
            {"detail", fmt::format("{}, omni-kernels {} ({})", served->arm->info().detail, omni_version(), kGitRevision)},
            {"bytes", served->arm->info().bytes},
            {"compare", served->workload->own_comparison()}};
  }
  if (served == nullptr) throw std::runtime_error("no case yet");
  SteadyClock clock;
  if (word == "run") return {{"ns", served->arm->sample(clock, std::stoll(rest))}};
  if (word == "output") {
    served->arm->verify();
    const Workload& w = *served->workload;
    std::ofstream file(rest, std::ios::binary);
    file.write(w.first<char>(w.output_part()), static_cast<std::streamsize>(w.parts()[w.output_part()].bytes));
    if (!file) throw std::runtime_error("cannot write " + rest);
    return {{"ok", true}, {"type", "bf16"}};
  }
  throw std::runtime_error("unknown request: " + word);
}

}  // namespace

int serve_as_worker(const RunOptions& options) {
  std::unique_ptr<Served> served;
  for (std::string line; std::getline(std::cin, line);) {
    json reply;
    try {
      reply = answer(line, options.isa, served);
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
  return 0;
}

}  // namespace omnibench
