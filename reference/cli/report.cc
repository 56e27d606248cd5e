// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/report.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "reference/cli/console.h"

namespace ref::cli {

Json rate_json(int64_t tokens, double seconds) {
  Json json = {{"tokens", tokens}, {"seconds", seconds}, {"tokens_per_second", nullptr}};
  if (tokens > 0 && seconds > 0) json["tokens_per_second"] = static_cast<double>(tokens) / seconds;
  return json;
}

std::string rate_text(int64_t tokens, double seconds) {
  std::string text = fmt::format("{} token{} in {:.2f} s", tokens, tokens == 1 ? "" : "s", seconds);
  if (tokens > 0 && seconds > 0) text += fmt::format(", {:.1f} tok/s", static_cast<double>(tokens) / seconds);
  return text;
}

std::string gb_text(uint64_t bytes) { return fmt::format("{:.3f} GB", static_cast<double>(bytes) * 1e-9); }

uint64_t peak_resident_bytes() {
  struct rusage usage {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_maxrss) * 1024 : 0;
}

Json model_json(const Model& model, const spark::Decoder& decoder) {
  return {{"path", model.path().string()},
          {"weight_path", model.form()},
          {"weight_bytes", model.weights()->bytes()},
          {"weight_bytes_per_token", decoder.weight_bytes_per_token()},
          {"cache_bytes", decoder.cache_bytes()},
          {"context", decoder.options().context},
          {"threads", omni_num_threads()},
          {"load_seconds", model.load_seconds()},
          {"kernels", decoder.describe()},
          {"notes", model.notes()}};
}

void note_model(const Model& model, const spark::Decoder& decoder, const MachineOptions& options) {
  if (options.quiet) return;
  for (const std::string& line : model.notes()) note("note: " + line);
  note(fmt::format("weights  {}; {} threads, loaded in {:.2f} s", model.form(), omni_num_threads(), model.load_seconds()));
  if (!options.verbose && options.profile.empty()) return;
  for (const std::string& line : decoder.describe()) note("kernel   " + line);
}

std::string dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

}  // namespace ref::cli
