// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <gtest/gtest.h>

namespace omnibench {
namespace {

Options parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "omni-bench");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string error_of(const std::vector<const char*>& arguments) {
  try {
    parse(arguments);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(Options, ShapeIsAllThatIsNeeded) {
  const Options o = parse({"--threads", "2", "--shape", "gate_up"});
  EXPECT_EQ(o.action, Action::kRun);
  ASSERT_EQ(o.run.shapes.size(), 1U);
  EXPECT_EQ(o.run.shapes[0].n, 13312);
  EXPECT_EQ(o.run.shapes[0].k, 2048);
  EXPECT_EQ(o.run.ops, std::vector<std::string>{"gemv"});
  EXPECT_EQ(o.run.ms, std::vector<int>{1});
  EXPECT_EQ(o.run.group, "128");
  EXPECT_EQ(o.run.min_effect_percent, 8);
  EXPECT_TRUE(o.run.arms.empty());
}

TEST(Options, Lists) {
  const Options o =
      parse({"--threads", "1", "--shape", "all,64x32,2x48x64", "--m", "1,2,16", "--op", "gemv,pack", "--cache", "both"});
  ASSERT_EQ(o.run.shapes.size(), 7U);
  EXPECT_EQ(o.run.shapes[5].n, 64);
  EXPECT_EQ(o.run.shapes[6].m, 2);
  std::vector<std::string> notes;
  const std::vector<Case> cases = cases_of(o.run, uint64_t{1} << 20, &notes);
  // Per named shape and the 64x32: three M and a pack, cold; 64x32 also hot; 2x48x64 has its own M.
  size_t hot = 0;
  for (const Case& c : cases) hot += c.hot ? 1 : 0;
  EXPECT_EQ(cases.size() - hot, 6 * 4 + 2U);
  EXPECT_EQ(hot, 4 + 2U);
  EXPECT_FALSE(notes.empty());
  EXPECT_EQ(cases[0].id(), "gemv/gate_up/13312x2048/m1/g128/group/cold/t1");
}

TEST(Options, HotIsRefusedForWhatTheCacheCannotHold) {
  const Options o = parse({"--threads", "1", "--shape", "gate_up", "--cache", "hot"});
  std::vector<std::string> notes;
  try {
    cases_of(o.run, uint64_t{8} << 20, &notes);
    FAIL() << "not refused";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--cache hot"), std::string::npos);
  }
  EXPECT_EQ(cases_of(o.run, uint64_t{32} << 20, &notes).size(), 1U);
}

TEST(Options, Arms) {
  const Options o = parse({"--threads", "1", "--shape", "o", "--arms", "omni,again=omni,w=cmd:python 'a,b.py',c=run:sleep 1"});
  ASSERT_EQ(o.run.arms.size(), 4U);
  EXPECT_EQ(o.run.arms[1].name, "again");
  EXPECT_EQ(o.run.arms[1].arm, "omni");
  EXPECT_TRUE(o.run.arms[2].worker);
  EXPECT_EQ(o.run.arms[2].command, "python 'a,b.py'");
  EXPECT_FALSE(o.run.arms[3].worker);
  EXPECT_EQ(o.run.arms[3].command, "sleep 1");
  EXPECT_FALSE(o.run.add_arms);
  EXPECT_TRUE(parse({"--threads", "1", "--shape", "o", "--arms", "+x=run:true"}).run.add_arms);
}

TEST(Options, BadInputNamesTheFlagAndTheValue) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{}, "--shape"},
      {{"--shape", "gate"}, "--shape gate:"},
      {{"--shape", "0x64"}, "--shape 0x64:"},
      {{"--shape", "64x"}, "--shape 64x:"},
      {{"--shape", "64x64x64x64"}, "--shape 64x64x64x64:"},
      {{"--shape", "99999999999999999999x1"}, "--shape 99999999999999999999x1:"},
      {{"--shape", "17x64x64"}, "--shape 17x64x64:"},
      {{"--shape", "o", "--op", "gemm"}, "--op gemm:"},
      {{"--shape", "o", "--m", "0"}, "--m 0:"},
      {{"--shape", "o", "--m", "17"}, "--m 17:"},
      {{"--shape", "o", "--m", "1,,2"}, "--m \"\":"},
      {{"--shape", "o", "--group", "100"}, "--group 100:"},
      {{"--shape", "o", "--isa", "sse9"}, "--isa sse9:"},
      {{"--shape", "o", "--threads", "0"}, "--threads 0:"},
      {{"--shape", "o", "--threads", "-1"}, "--threads -1:"},
      {{"--shape", "o", "--cache", "warm"}, "--cache warm:"},
      {{"--shape", "o", "--class", "exact"}, "--class exact:"},
      {{"--shape", "o", "--passes", "0"}, "--passes 0:"},
      {{"--shape", "o", "--passes", "1e3"}, "--passes 1e3:"},
      {{"--shape", "o", "--min-effect", "-3"}, "--min-effect -3:"},
      {{"--shape", "o", "--min-effect", "nan"}, "--min-effect nan:"},
      {{"--shape", "o", "--arms", "=x"}, "--arms =x:"},
      {{"--shape", "o", "--arms", "a,a"}, "--arms a:"},
      {{"--shape", "o", "--json"}, "--json"},
      {{"--shap", "o"}, "--shap"},
      {{"compare", "one.json"}, "reports"},
      {{"compare", "a", "b", "--min-effect", "x"}, "--min-effect x:"},
  };
  for (const auto& [arguments, expected] : cases) {
    std::vector<const char*> with_threads = arguments;
    const bool has_threads = std::find_if(arguments.begin(), arguments.end(), [](const char* a) {
                               return std::string(a) == "--threads" || std::string(a) == "compare";
                             }) != arguments.end();
    if (!has_threads && !arguments.empty()) {
      with_threads.push_back("--threads");
      with_threads.push_back("1");
      if (std::string(arguments.back()) == "--json") with_threads = arguments;
    }
    const std::string error = error_of(with_threads);
    EXPECT_NE(error.find(expected), std::string::npos) << "\"" << error << "\" should name " << expected;
    EXPECT_EQ(error.find('\n'), std::string::npos);
  }
}

TEST(Options, Subcommands) {
  EXPECT_EQ(parse({"--list"}).action, Action::kList);
  EXPECT_EQ(parse({"--help"}).action, Action::kHelp);
  const Options o = parse({"compare", "a.json", "b.json", "--min-effect", "5"});
  EXPECT_EQ(o.action, Action::kCompare);
  EXPECT_EQ(o.files.size(), 2U);
  EXPECT_EQ(o.compare_min_effect_percent, 5);
}

}  // namespace
}  // namespace omnibench
