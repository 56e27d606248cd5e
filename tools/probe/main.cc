// SPDX-License-Identifier: Apache-2.0
// omni-probe: what this machine is, which kernel each operation would get, and why.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include "tools/probe/disassemble.h"
#include "tools/probe/failure.h"
#include "tools/probe/report.h"

namespace probe {
namespace {

struct Options {
  bool json = false;
  bool no_bandwidth = false;
  std::string profile;
  std::string disassemble;
  std::string shape = "gate_up";
  std::optional<uint32_t> m;
};

void check(omni_status status, const char* what) {
  if (status != OMNI_OK)
    throw Failure(Exit::kLibrary, fmt::format("{}: {}: {}", what, omni_status_name(status), omni_last_error()));
}

void use_profile(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) throw Failure(Exit::kFile, fmt::format("--profile {}: is a directory", path));
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();  // bad when reading fails, as it does for a folder
  if (!file.is_open() || content.bad()) throw Failure(Exit::kFile, fmt::format("--profile {}: cannot read the file", path));
  const std::string text = content.str();
  if (text.find('\0') != std::string::npos)
    throw Failure(Exit::kFile, fmt::format("--profile {}: the file holds a NUL byte", path));
  const omni_status status = omni_set_profile_json(text.c_str());
  if (status == OMNI_ERR_PROFILE) throw Failure(Exit::kFile, fmt::format("--profile {}: {}", path, omni_last_error()));
  check(status, "omni_set_profile_json");
}

std::string profile_json() {
  size_t needed = 0;
  check(omni_get_profile_json(nullptr, 0, &needed), "omni_get_profile_json");
  std::string text(needed, '\0');
  check(omni_get_profile_json(text.data(), text.size(), &needed), "omni_get_profile_json");
  text.resize(needed - 1);
  return text;
}

Report collect(const Options& options) {
  Report report;
  report.machine.size = sizeof report.machine;
  check(omni_get_machine(&report.machine), "omni_get_machine");
  report.profile_json = profile_json();
  report.profile_file = options.profile;
  report.num_threads = omni_num_threads();
  report.system = read_system_state();
  // Under a profile the figures would be those of another machine than the one described above them.
  report.bandwidth_measured = !options.no_bandwidth && options.profile.empty();
  if (report.bandwidth_measured) {
    report.bandwidth = measure_bandwidth(report.machine.l3_bytes, report.num_threads, &report.bandwidth_error);
  }
  report.kernels = list_kernels();
  report.choices = list_choices();
  return report;
}

std::string run(const Options& options) {
  check(omni_initialize(), "omni_initialize");
  const std::optional<tools::Shape> shape = tools::parse_shape(options.shape);
  if (!shape) throw Failure(Exit::kUsage, fmt::format("--shape {}: expected a known shape or NxK", options.shape));
  if (!options.profile.empty()) use_profile(options.profile);
  if (!options.disassemble.empty()) return disassemble(options.disassemble, *shape, options.m);
  const Report report = collect(options);
  return options.json ? to_json(report) : to_text(report);
}

void add_options(CLI::App& app, Options& options) {
  app.add_flag("--json", options.json, "Write the machine profile and everything else as JSON");
  app.add_option("--profile", options.profile, "Take the machine from FILE (written by --json) instead of probing")
      ->type_name("FILE");
  app.add_option("--disassemble", options.disassemble, "Generate the kernel NAME and write its machine code as text")
      ->type_name("NAME");
  app.add_option("--shape", options.shape, "Shape for --disassemble: gate_up, down, q_k_v, o, head or NxK")->capture_default_str();
  app.add_option("--m", options.m, "Rows of x for --disassemble; by default 1, for a gemm kernel 16")->check(CLI::Range(1, 16));
  app.add_flag("--no-bandwidth", options.no_bandwidth, "Do not measure the read bandwidth of memory");
  app.set_version_flag("--version", omni_version());
  app.footer("Exit codes: 0, 2 usage, 3 unreadable file, 4 error of the library.");
}

int fail(const char* text, Exit code) {
  std::fprintf(stderr, "omni-probe: %s\n", text);
  return static_cast<int>(code);
}

int run_command_line(int argc, char** argv) {
  CLI::App app("What this machine is, which kernel each operation would get, and why.", "omni-probe");
  Options options;
  add_options(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(error.what(), Exit::kUsage);
  }
  const std::string text = run(options);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return fail("stdout: cannot write", Exit::kFile);
  }
  return 0;
}

}  // namespace
}  // namespace probe

int main(int argc, char** argv) {
  try {
    return probe::run_command_line(argc, argv);
  } catch (const probe::Failure& failure) {
    return probe::fail(failure.what(), failure.code);
  } catch (const std::exception& error) {
    return probe::fail(error.what(), probe::Exit::kLibrary);
  }
}
