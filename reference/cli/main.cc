// SPDX-License-Identifier: Apache-2.0
// omni-generate: text from a Spark-X2.5 model, and what tells how good and how fast a model is.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <string>

#include "omni/omni.h"
#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/failure.h"
#include "reference/core/error.h"

namespace ref::cli {
namespace {

constexpr Command kCommands[] = {
    {"generate", "Continue a prompt; the command when none is named", add_generate},
    {"perplexity", "How well a model predicts a text", add_perplexity},
    {"compare", "How far one model is from another on a text", add_compare},
    {"logits", "The logits after a text", add_logits},
    {"parity", "Compare every tensor with a golden file; names the first that departs", add_parity},
    {"bench", "Speed of reading a prompt and of decoding, apart", add_bench},
    {"info", "What a model is, the kernels that would serve it, and the memory of its cache", add_info},
};

constexpr const char* kExitCodes =
    "Exit codes: 0, 2 usage, 3 model, 4 prompt or other input, 5 memory, 6 parity departs, 7 library or machine, 8 output, "
    "130 after Ctrl-C (128 + signal).";

std::string footer(bool with_commands) {
  std::string text;
  if (with_commands) {
    text = "Commands (omni-generate COMMAND --help):\n";
    for (const Command& command : kCommands) text += fmt::format("  {:12}{}\n", command.name, command.summary);
  }
  return text + kExitCodes;
}

// One line, whatever the texts in it hold.
int fail(std::string text, int code) {
  for (char& letter : text) {
    if (letter == '\n' || letter == '\r') letter = ' ';
  }
  note("omni-generate: " + text);
  return code;
}

int run(const Command& command, bool named, int argc, char** argv) {
  const std::string name = named ? fmt::format("omni-generate {}", command.name) : "omni-generate";
  CLI::App app(command.summary, name);
  app.footer(footer(!named));
  app.set_version_flag("--version", omni_version());
  const Run body = command.add(&app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    return fail(error.what(), static_cast<int>(Exit::kUsage));
  }
  listen_for_signals();
  return body();
}

}  // namespace
}  // namespace ref::cli

int main(int argc, char** argv) {
  using namespace ref::cli;
  const auto code = [](Exit exit_code) { return static_cast<int>(exit_code); };
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
  } catch (const Interrupted&) {
    return fail("interrupted", code(Exit::kSignal) + received_signal());
  } catch (const Failure& failure) {
    return fail(failure.what(), code(failure.code));
  } catch (const ref::MemoryError& error) {
    return fail(error.what(), code(Exit::kMemory));
  } catch (const std::bad_alloc&) {
    return fail("out of memory", code(Exit::kMemory));
  } catch (const std::exception& error) {
    return fail(error.what(), code(Exit::kMachine));
  }
}
