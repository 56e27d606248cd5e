// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <gtest/gtest.h>

#include "bench/ops/op.h"

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
  ASSERT_EQ(o.run.cases.size(), 1U);
  const Case& c = o.run.cases[0];
  EXPECT_EQ(c.n(), 13312);
  EXPECT_EQ(c.k(), 2048);
  EXPECT_EQ(c.op, "w4a16");
  EXPECT_EQ(c.m, 1);
  EXPECT_EQ(c.group, 128U);
  EXPECT_EQ(c.variant, "group");
  EXPECT_EQ(c.threads, 2U);
  EXPECT_EQ(o.run.min_effect_percent, 8);
  EXPECT_TRUE(o.run.arms.empty());
}

TEST(Options, Lists) {
  const Options o = parse({"--threads", "1", "--shape", "all,64x32", "--m", "1,2,16", "--op", "gemv,pack", "--cache", "both"});
  std::vector<std::string> notes;
  const std::vector<Case> cases = cases_of(o.run, uint64_t{1} << 20, &notes);
  // Per named shape and the 64x32: three M and a pack, cold; 64x32 also hot.
  size_t hot = 0;
  for (const Case& c : cases) hot += c.hot ? 1 : 0;
  EXPECT_EQ(cases.size() - hot, 6 * 4U);
  EXPECT_EQ(hot, 4U);
  EXPECT_FALSE(notes.empty());
  EXPECT_EQ(cases[0].id(), "w4a16/gate_up/13312x2048/m1/g128/group/cold/t1");
  EXPECT_EQ(cases[15].id(), "pack/gate_up/13312x2048/g128/cold/t1");
  const Options own = parse({"--threads", "1", "--shape", "2x48x64", "--m", "1,5"});
  ASSERT_EQ(own.run.cases.size(), 1U);  // a shape with an M of its own is asked for once
  EXPECT_EQ(own.run.cases[0].m, 2);
  EXPECT_EQ(own.run.cases[0].shape.name, "48x64");
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

TEST(Options, TheRecordedCommandSaysNothingOfWhereFilesGo) {
  const auto recorded = [](std::vector<const char*> arguments) { return parse(std::move(arguments)).run.command_line; };
  EXPECT_EQ(recorded({"--json", "/home/someone/a.json", "--threads", "1", "--html=out.html", "--shape", "o"}),
            "--threads 1 --shape o");
  EXPECT_EQ(recorded({"--suite", "--summary", "s.md", "--threads", "2"}), "--suite --threads 2");
  // As a shell takes it again, and what only looks alike is not lost.
  EXPECT_EQ(recorded({"--threads", "1", "--shape", "o", "--arms", "a=cmd:w --json 'x'"}),
            R"(--threads 1 --shape o --arms 'a=cmd:w --json '\''x'\''')");
}

// The parts of a speech model come with the frames of a call.
TEST(Options, ANamedShapeMayHaveRowsOfItsOwn) {
  const Options o = parse({"--threads", "2", "--op", "speech", "--shape", "all", "--m", "9"});
  ASSERT_EQ(o.run.cases.size(), 7U);
  EXPECT_EQ(o.run.cases[3].id(), "speech/codec-4/23x512/m4/cold/t2");
}

TEST(Options, BadInputNamesTheFlagAndTheValue) {
  const std::vector<std::pair<std::vector<const char*>, std::string>> cases = {
      {{}, "--suite"},
      {{"--shape", "gate"}, "--shape gate:"},
      {{"--shape", "0x64"}, "--shape 0x64:"},
      {{"--shape", "64x"}, "--shape 64x:"},
      {{"--shape", "64x64x64x64"}, "--shape 64x64x64x64:"},
      {{"--shape", "99999999999999999999x1"}, "--shape 99999999999999999999x1:"},
      {{"--shape", "5000x64x64"}, "--shape 5000x64x64:"},
      {{"--op", "pack", "--shape", "1x64x64"}, "--shape 1x64x64:"},
      {{"--shape", "o", "--op", "gemm"}, "--op gemm:"},
      {{"--shape", "o", "--m", "0"}, "--m 0:"},
      {{"--shape", "o", "--m", "4097"}, "--m 4097:"},
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
      {{"--suite", "--shape", "o"}, "--shape o:"},
      {{"--suite", "--budget", "ten"}, "--budget ten:"},
      {{"--shape", "o", "--only", "w4a8"}, "--only w4a8:"},
      {{"--shape", "o", "--summary", "s.md"}, "--summary s.md:"},
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

TEST(Options, EveryOperationHasAUsualCase) {
  for (const Op& op : all_ops()) {
    const Options o = parse({"--threads", "1", "--op", op.name.c_str()});
    ASSERT_EQ(o.run.cases.size(), 1U) << op.name;
    const Case& c = o.run.cases[0];
    EXPECT_EQ(c.shape.name, op.shapes.front().name) << op.name;
    EXPECT_EQ(c.m > 0, op.most_rows > 0) << op.name;
    EXPECT_EQ(c.group > 0, !op.group.empty()) << op.name;
    EXPECT_EQ(c.variant, op.variants.empty() ? "" : op.variants.front()) << op.name;
    for (const Shape& shape : op.shapes) EXPECT_EQ(shape.sizes.size(), op.sizes.size()) << op.name << " " << shape.name;
    std::vector<std::string> notes;
    const std::vector<Case> cases = cases_of(o.run, uint64_t{1} << 20, &notes);
    ASSERT_EQ(cases.size(), 1U) << op.name;
    EXPECT_EQ(cases[0].hot, !op.cold) << op.name;
    EXPECT_GT(moved_bytes(cases[0]), 0) << op.name;
  }
}

TEST(Options, Suite) {
  const Options o = parse({"--suite", "--threads", "2", "--budget", "2.5", "--only", "w4a8", "--passes", "20"});
  EXPECT_EQ(o.action, Action::kSuite);
  EXPECT_EQ(o.suite.minutes, 2.5);
  EXPECT_EQ(o.suite.only, "w4a8");
  EXPECT_EQ(o.run.passes, 20);
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
