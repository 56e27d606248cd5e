// SPDX-License-Identifier: Apache-2.0
// omni-pack: a model directory in Hugging Face layout to a packed one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <string>

#include "omni/omni.hpp"
#include "reference/core/error.h"
#include "reference/core/weight_path.h"
#include "reference/pack/models.h"
#include "reference/pack/plan.h"
#include "reference/pack/staged_directory.h"
#include "reference/pack/synthetic_models.h"
#include "tools/pack/exit_codes.h"
#include "tools/pack/interrupt.h"
#include "tools/pack/options.h"
#include "tools/pack/progress_bar.h"
#include "tools/pack/report.h"

namespace pack {
namespace {

constexpr const char* kSpeechType = "qwen3_tts";  // "model_type" of a config

// stdout takes results, stderr everything else.
void say(const Options& options, const std::string& line) {
  if (!options.quiet) fmt::print(stderr, "omni-pack: {}\n", line);
}

uint64_t stored_bytes(const ref::PackResult& result) {
  uint64_t bytes = 0;
  for (const ref::TensorReport& tensor : result.tensors) bytes += tensor.bytes;
  return bytes;
}

class Program {
 public:
  explicit Program(const Options& options) : options_(options), pool_(options.threads) {}

  void run() {
    if (!options_.verify.empty()) {
      ref::verify_packed(options_.verify, progress(), pool_.parallel());
      bar_.reset();
      say(options_, options_.verify + ": every tensor has its SHA-256");
      return;
    }
    const auto start = std::chrono::steady_clock::now();
    const ref::PackResult result = make();
    bar_.reset();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (const std::string& note : result.notes) say(options_, "note: " + note);
    say(options_,
        fmt::format("{}: {:.3f} GB in {:.1f} s", options_.paths.back(), static_cast<double>(stored_bytes(result)) / 1e9, seconds));
    report(result);
  }

 private:
  ref::Progress progress() {
    bar_ = std::make_unique<ProgressBar>(!options_.quiet);
    return [this](const std::string& tensor, uint64_t done, uint64_t total) {
      check_signals();
      announce();
      bar_->show(tensor, done, total);
    };
  }

  // When the work begins, so that an error before it is the only line.
  void announce() {
    if (!choice_.empty()) say(options_, choice_);
    choice_.clear();
  }

  ref::PackOptions library_options(const std::string& model_type) {
    std::string reason;
    ref::PackOptions pack = pack_options(options_, model_type == kSpeechType, &reason);
    if (!reason.empty()) choice_ = fmt::format("weights {}: {}", ref::weight_type_name(pack.weights), reason);
    return pack;
  }

  ref::PackResult make() {
    const bool packed = options_.synthetic_source.empty();
    const std::string& name = packed ? options_.synthetic : options_.synthetic_source;
    if (!name.empty()) {
      const ref::PackOptions pack = library_options(ref::synthetic_type(name));
      if (!packed) choice_.clear();  // a checkpoint has no forms to choose
      const ref::SyntheticModel model = packed ? ref::synthetic_packed(name, pack) : ref::synthetic_checkpoint(name);
      return ref::write_synthetic(model, options_.paths[0], pack, options_.force, progress(), pool_.parallel());
    }
    if (ref::is_packed(options_.paths[0])) throw ref::Error(options_.paths[0] + ": is packed already");
    const ref::Checkpoint source = ref::Checkpoint::open(options_.paths[0]);
    const nlohmann::json config = ref::read_model_config(source.directory());
    const nlohmann::json type = config.value("model_type", nlohmann::json());
    ref::PackOptions pack = library_options(type.is_string() ? type.get<std::string>() : "");
    const ref::Progress shown = progress();
    uint64_t last_done = 0, last_total = 1;
    const std::unique_ptr<ref::Calibration> calibration =
        calibrate(source, config, pack.quantiser, [&](const std::string& what) { shown(what, last_done, last_total); });
    pack.calibration = calibration.get();
    return ref::pack_to_directory(
        source, options_.paths[1], pack, options_.force,
        [&](const std::string& tensor, uint64_t done, uint64_t total) { shown(tensor, last_done = done, last_total = total); },
        pool_.parallel());
  }

  // Statistics of the text of --calibrate, taken while the layers are packed; null without it.
  std::unique_ptr<ref::Calibration> calibrate(const ref::Checkpoint& source, const nlohmann::json& config, ref::Quantiser quantiser,
                                              const std::function<void(const std::string&)>& tick) {
    if (options_.calibrate.empty()) return nullptr;
    const std::filesystem::path& directory = source.directory();
    ref::CalibrationOptions calibration;
    calibration.most_windows = options_.calibrate_windows;
    calibration.factors = quantiser == ref::Quantiser::kGptq;
    calibration.parallel = pool_.parallel();
    calibration.tick = tick;
    return ref::calibrate_model(source, config, ref::read_text_ids(options_.calibrate, directory), calibration);
  }

  void report(const ref::PackResult& result) {
    if (options_.report.empty()) return;
    const std::string table = report_table(result);
    if (std::fwrite(table.data(), 1, table.size(), stdout) != table.size() || std::fflush(stdout) != 0) {
      throw ref::OutputError("stdout: cannot be written");
    }
    if (options_.report != "-") write_report(options_.report, report_json(result));
  }

  const Options& options_;
  omni::Pool pool_;
  std::unique_ptr<ProgressBar> bar_;
  std::string choice_;
};

int fail(const std::string& text, int code) {
  fmt::print(stderr, "omni-pack: {}\n", text);
  return code;
}

int run_command_line(int argc, char** argv) {
  CLI::App app("Packs a model directory in Hugging Face layout for omni-generate.", "omni-pack");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(error.what(), kUsage);
  }
  if (const std::string problem = check_paths(options); !problem.empty()) return fail(problem, kUsage);
  if (omni_initialize() != OMNI_OK) return fail(omni_last_error(), kUsage);
  Program(options).run();
  return kDone;
}

}  // namespace
}  // namespace pack

int main(int argc, char** argv) {
  pack::watch_signals();
  try {
    return pack::run_command_line(argc, argv);
  } catch (const pack::Interrupted& interrupted) {
    return pack::fail("interrupted; nothing was left behind", 128 + interrupted.signal);
  } catch (const ref::OutputError& error) {
    return pack::fail(error.what(), pack::kOutput);
  } catch (const ref::Error& error) {
    return pack::fail(error.what(), pack::kInput);
  } catch (const std::bad_alloc&) {
    return pack::fail("memory is exhausted", pack::kMachine);
  } catch (const std::exception& error) {
    return pack::fail(error.what(), pack::kMachine);
  }
}
