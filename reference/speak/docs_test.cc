// SPDX-License-Identifier: Apache-2.0
// docs/speak.md says what the program does: its options and its exit codes.
#include "reference/cli/failure.h"
#include "reference/speak/program_for_test.h"

namespace ref::speak::testing {
namespace {

std::string page() { return read_file(OMNI_SOURCE "/docs/speak.md"); }

TEST(SpeakPage, NamesEveryOption) {
  const std::string text = page();
  for (const char* command : {"speak", "compare", "parity", "bench", "info"}) {
    const std::string help = run(program({command, "--help"})).out;
    ASSERT_FALSE(help.empty());
    for (size_t at = help.find("--"); at != std::string::npos; at = help.find("--", at + 2)) {
      if (at > 0 && help[at - 1] != ' ' && help[at - 1] != ',') continue;
      const std::string flag = help.substr(at, help.find_first_of(" ,)\n", at) - at);
      const std::string plain = flag.starts_with("--a-") || flag.starts_with("--b-") ? "--" + flag.substr(4) : flag;
      if (plain == "--version" || plain == "--help" || plain == "--help,") continue;
      EXPECT_NE(text.find(plain), std::string::npos) << command << " " << flag;
    }
  }
}

TEST(SpeakPage, NamesEveryExitCode) {
  for (int code = static_cast<int>(cli::Exit::kUsage); code <= static_cast<int>(cli::Exit::kLimit); ++code) {
    EXPECT_NE(page().find("| " + std::to_string(code) + " |"), std::string::npos) << code;
  }
}

}  // namespace
}  // namespace ref::speak::testing
