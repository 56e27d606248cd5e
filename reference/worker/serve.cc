// SPDX-License-Identifier: Apache-2.0
#include "reference/worker/serve.h"

#include <istream>
#include <ostream>

#include "reference/core/check.h"
#include "reference/core/error.h"

namespace ref::worker {
namespace {

using nlohmann::json;
using Make = std::function<std::unique_ptr<Served>(const json&)>;

json answer(const std::string& line, const Make& make, std::unique_ptr<Served>& served) {
  const size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space);
  const std::string rest = space < line.size() ? line.substr(space + 1) : "";
  if (word == "case") {
    served.reset();  // before the next one takes its memory
    served = make(json::parse(rest));
    return {{"ok", true}, {"detail", served->detail()}, {"compare", "none"}, {"bytes", served->bytes()}};
  }
  if (served == nullptr) throw Error("no case yet");
  if (word == "run") return {{"ns", served->run(std::stoll(rest))}};
  throw Error("unknown request: " + word);
}

}  // namespace

Pool::Pool(uint32_t threads) {
  check(omni_pool_create(threads, &pool_), "threads");
  parallel_.size = sizeof parallel_;
  check(omni_pool_parallel(pool_, &parallel_), "threads");
}

omni_dtype cache_type(const std::string& name) {
  if (name == "f32") return OMNI_DTYPE_F32;
  return name == "int8" ? OMNI_DTYPE_S8 : OMNI_DTYPE_BF16;
}

void serve(std::istream& in, std::ostream& out, const Make& make) {
  std::unique_ptr<Served> served;
  for (std::string line; std::getline(in, line);) {
    json reply;
    try {
      reply = answer(line, make, served);
    } catch (const Refused& refusal) {
      reply = {{"refused", refusal.what()}};
    } catch (const std::exception& error) {
      reply = {{"error", error.what()}};
    }
    out << reply.dump() << std::endl;
  }
}

}  // namespace ref::worker
