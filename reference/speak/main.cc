// SPDX-License-Identifier: Apache-2.0
// omni-speak: speech from a Qwen3-TTS model, and what tells how good and how fast a model is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <string>

#include "omni/omni.h"
#include "reference/cli/console.h"
#include "reference/cli/failure.h"
#include "reference/core/error.h"
#include "reference/speak/commands.h"

namespace ref::speak {
namespace {

using cli::Command;
using cli::Exit;

constexpr Command kCommands[] = {
    {"speak", "Speak a text; the command when none is named", add_speak},
    {"parity", "Compare every tensor and sample with a golden file; names the first that departs", add_parity},
    {"compare", "How far one model is from another, codebook by codebook, on the same frames", add_compare},
    {"bench", "Real-time factor, time to first sound, and where the time goes", add_bench},
    {"info", "What a model is, its voices, and the kernels that would serve it", add_info},
};

constexpr const char* kExitCodes =
    "Exit codes: 0, 2 usage, 3 model, 4 text or other input, 5 memory, 6 parity departs, 7 library or machine, 8 output, "
    "9 a limit ended speech before its end, 130 after Ctrl-C (128 + signal).";

std::string footer(bool with_commands) {
  std::string text;
  if (with_commands) {
    text = "Commands (omni-speak COMMAND --help):\n";
    for (const Command& command : kCommands) text += fmt::format("  {:12}{}\n", command.name, command.summary);
  }
  return text + kExitCodes;
}

// One line, whatever the texts in it hold.
int fail(std::string text, Exit code, int more = 0) {
  for (char& letter : text) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  cli::note("omni-speak: " + text);
  return static_cast<int>(code) + more;
}

int run(const Command& command, bool named, int argc, char** argv) {
  const std::string name = named ? fmt::format("omni-speak {}", command.name) : "omni-speak";
  CLI::App app(command.summary, name);
  app.footer(footer(!named));
  app.set_version_flag("--version", omni_version());
  const cli::Run body = command.add(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(error.what(), Exit::kUsage);
  }
  cli::listen_for_signals();
  return body();
}

}  // namespace

int start(int argc, char** argv) {
  const Command* command = &kCommands[0];
  bool named = false;
  for (const Command& candidate : kCommands) {
    if (argc > 1 && std::strcmp(argv[1], candidate.name) == 0) {
      command = &candidate;
      named = true;
    }
  }
  try {
    return run(*command, named, argc - (named ? 1 : 0), argv + (named ? 1 : 0));
  } catch (const cli::Interrupted&) {
    return fail("interrupted", Exit::kSignal, cli::received_signal());
  } catch (const cli::Failure& failure) {
    return fail(failure.what(), failure.code);
  } catch (const ref::MemoryError& error) {
    return fail(error.what(), Exit::kMemory);
  } catch (const std::bad_alloc&) {
    return fail("out of memory", Exit::kMemory);
  } catch (const std::exception& error) {
    return fail(error.what(), Exit::kMachine);
  }
}

}  // namespace ref::speak

int main(int argc, char** argv) { return ref::speak::start(argc, argv); }
