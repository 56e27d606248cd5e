// SPDX-License-Identifier: Apache-2.0
// docs/generate.md says what the program does: its memory tables, its options, its exit codes.
#include "reference/cli/failure.h"
#include "reference/cli/memory_table.h"
#include "reference/cli/program_for_test.h"
#include "reference/spark/config.h"
#include "reference/spark/decoder.h"
#include "reference/spark/synthetic.h"

namespace ref::cli::testing {
namespace {

std::string page() { return read_file(OMNI_SOURCE "/docs/generate.md"); }

TEST(Page, MemoryTables) {
  for (const char* name : {"spark-1.7b", "spark-4b"}) {
    const CacheModel cache = spark::cache_model(spark::read_config(spark::synthetic_config(name), name));
    const std::string table = memory_table(cache, kTableContexts, 512, OMNI_DTYPE_BF16);
    EXPECT_NE(page().find(table), std::string::npos) << name << "\n" << table;
  }
}

TEST(Page, NamesEveryOption) {
  const std::string text = page();
  for (const char* command : {"generate", "perplexity", "compare", "logits", "parity", "bench", "info"}) {
    const std::string help = run(program({command, "--help"})).out;
    ASSERT_FALSE(help.empty());
    for (size_t at = help.find(" --"); at != std::string::npos; at = help.find(" --", at + 1)) {
      // "-n,--max-tokens" is found by its long name further on.
      const std::string flag = help.substr(at + 1, help.find_first_of(" ,\n", at + 1) - at - 1);
      const std::string plain = flag.starts_with("--a-") || flag.starts_with("--b-") ? "--" + flag.substr(4) : flag;
      if (plain != "--version" && plain != "--help" && plain != "--") {
        EXPECT_NE(text.find("`" + plain), std::string::npos) << command << " " << flag;
      }
    }
  }
}

TEST(Page, NamesEveryExitCode) {
  for (const Exit code : {Exit::kUsage, Exit::kModel, Exit::kInput, Exit::kMemory, Exit::kDeparts, Exit::kMachine, Exit::kOutput}) {
    EXPECT_NE(page().find("| " + std::to_string(static_cast<int>(code)) + " |"), std::string::npos) << static_cast<int>(code);
  }
}

}  // namespace
}  // namespace ref::cli::testing
