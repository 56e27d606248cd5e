// SPDX-License-Identifier: Apache-2.0
#include "bench/report.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "bench/compare.h"
#include "bench/fake_arm.h"
#include "bench/output_file.h"
#include "bench/plot.h"

namespace omnibench {
namespace {

using nlohmann::json;

Case small_case(int64_t n, int64_t k) {
  Case c;
  c.op = "w4a16";
  c.shape = {std::to_string(n) + "x" + std::to_string(k), {n, k}, 0, 1};
  c.group = 128;
  c.variant = "group";
  c.threads = 2;
  return c;
}

/// A run of fake arms on a case; `a_ns`, `b_ns` per call.
json fake_result(double a_ns, double b_ns, const std::function<std::string(const std::string&, int)>& inject = {}) {
  FakeClock clock;
  HarnessOptions options;
  options.clock = &clock;
  options.passes = 12;
  options.min_sample_ns = 1000;
  options.max_calls = 4096;
  options.inject = inject;
  std::vector<std::unique_ptr<Arm>> arms;
  arms.push_back(std::make_unique<FakeArm>("a", clock, [=] { return a_ns; }));
  arms.push_back(std::make_unique<FakeArm>("b <&\"", clock, [=] { return b_ns; }));
  arms.push_back(std::make_unique<FakeArm>(
      "read", clock, [] { return 50.0; }, ArmRole::kRead));
  CaseSetting setting;
  setting.c = small_case(64, 64);
  setting.pages = "4 KiB";
  return result_json(setting, run_case(setting.c.id(), arms, options), 0.08);
}

json fake_report(const json& result) {
  return report_json({{"min_effect_percent", 8.0}}, {{"name", "fake <processor>"}}, json::array({result}), {},
                     result["status"] == "ok");
}

void expect_no_special_numbers(const std::string& text) {
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("NaN"), std::string::npos);
  EXPECT_EQ(text.find(":inf"), std::string::npos);
  EXPECT_EQ(text.find("-inf"), std::string::npos);
}

TEST(Report, HasTheDocumentedFields) {
  const json report = fake_report(fake_result(100, 200));
  EXPECT_EQ(report["schema"], "omni-bench");
  EXPECT_EQ(report["schema_version"], 1);
  EXPECT_TRUE(report["git_revision"].is_string());
  EXPECT_TRUE(report["google_benchmark_context"].contains("num_cpus"));
  EXPECT_FALSE(report["google_benchmark_context"].contains("host_name"));
  const json& result = report["results"][0];
  EXPECT_EQ(result["fastest"], "a");
  EXPECT_EQ(result["order"].size(), 12U);
  for (const json& arm : result["arms"]) {
    for (const char* key :
         {"name", "median_ns", "best_ns", "spread", "gbps", "share_of_read", "share_of_peak", "verified", "error", "n"}) {
      EXPECT_TRUE(arm.contains(key)) << key;
    }
    EXPECT_EQ(arm["samples"].size(), 12U);
    EXPECT_EQ(arm["n"], 12);
  }
  EXPECT_NEAR(result["arms"][0]["median_ns"].get<double>(), 100, 1e-6);
  EXPECT_NEAR(result["arms"][0]["gbps"].get<double>(), 10, 1e-6);            // 1000 bytes in 100 ns
  EXPECT_NEAR(result["arms"][0]["share_of_read"].get<double>(), 0.5, 1e-6);  // the read arm took 50 ns for them
  EXPECT_TRUE(result["arms"][0]["share_of_peak"].is_null());
}

TEST(Report, NeverHoldsNanOrInfinity) {
  for (const auto& [a, b] : {std::pair{0.0, 100.0}, {0.0, 0.0}, {1e-9, 100.0}}) {
    const json report = fake_report(fake_result(a, b));
    expect_no_special_numbers(report.dump());
    EXPECT_EQ(report["results"][0]["arms"][0]["status"], "too fast");
    EXPECT_TRUE(report["results"][0]["arms"][0]["median_ns"].is_null());
    bool missing = false;
    EXPECT_NO_THROW(report_terminal(report));
    expect_no_special_numbers(report_html(report, &missing).substr(0, 2000));
  }
  EXPECT_TRUE(number(std::nan("")).is_null());
  EXPECT_TRUE(number(HUGE_VAL).is_null());
}

TEST(Report, ListsFailuresWithTheirReason) {
  for (const int bad : {0, 6, -1}) {
    const json result = fake_result(100, 200, [=](const std::string& arm, int pass) {
      return arm == "a" && (bad < 0 || pass == bad) ? "injected failure" : "";
    });
    const json report = fake_report(result);
    EXPECT_EQ(report["status"], "failed");
    const json& arm = report["results"][0]["arms"][0];
    EXPECT_EQ(arm["n"], bad < 0 ? 0 : 11);
    EXPECT_EQ(arm["failed_passes"], bad < 0 ? 12 : 1);
    EXPECT_EQ(arm["status"], bad < 0 ? "failed" : "partial");
    EXPECT_EQ(arm["samples"][bad < 0 ? 3 : bad]["error"], "injected failure");
    EXPECT_EQ(arm["median_ns"].is_null(), bad < 0);
    EXPECT_NE(report_terminal(report).find("injected failure"), std::string::npos);
    bool missing = false;
    EXPECT_NE(report_html(report, &missing).find("injected failure"), std::string::npos);
    expect_no_special_numbers(report.dump());
  }
}

// 8192x2048 g128: bytes = codes + scales + x + y, GB = 1e9, operations = 2*M*N*K.
TEST(Report, BytesAndOperationsModel) {
  Case c = small_case(8192, 2048);
  const std::vector<Part> parts = parts_of(c);
  ASSERT_EQ(parts.size(), 4U);
  EXPECT_EQ(parts[0].moved_bytes(), 8192.0 * 2048 / 2);
  EXPECT_EQ(parts[1].moved_bytes(), 16.0 * 8192 * 2 * 2);
  EXPECT_EQ(parts[2].moved_bytes(), 2048.0 * 2);
  EXPECT_EQ(parts[3].moved_bytes(), 8192.0 * 2);
  const double total = 8192.0 * 2048 / 2 + 16.0 * 8192 * 2 * 2 + 2048.0 * 2 + 8192.0 * 2;
  EXPECT_EQ(moved_bytes(c), total);
  EXPECT_EQ(rotated_bytes(c), parts[0].moved_bytes() + parts[1].moved_bytes());
  EXPECT_EQ(operations_of(c), 2.0 * 8192 * 2048);

  CaseRun run;
  ArmRun arm;
  arm.info = {"a", ArmRole::kContender, "", total, operations_of(c)};
  for (int p = 0; p < 12; ++p) {
    Sample s;
    s.pass = p;
    s.calls = 1;
    s.ns = 1e6;  // one millisecond
    arm.samples.push_back(s);
    run.order.push_back({0});
  }
  run.arms.push_back(arm);
  const json result = result_json({c, 1, 0, "4 KiB", {}}, run, 0.08);
  EXPECT_NEAR(result["arms"][0]["gbps"].get<double>(), total / 1e6, 1e-9);
  EXPECT_NEAR(result["arms"][0]["gflops"].get<double>(), 2.0 * 8192 * 2048 / 1e6, 1e-9);
  EXPECT_EQ(result["case"]["bytes"]["total"], total);
  const std::string text = report_terminal(fake_report(result));
  EXPECT_NE(text.find("GB/s"), std::string::npos);
  EXPECT_NE(text.find("codes 8388608 + scales 524288 + x 4096 + y 16384 = 8933376"), std::string::npos) << text;
  c.m = 16;
  EXPECT_EQ(operations_of(c), 2.0 * 16 * 8192 * 2048);
}

TEST(Html, IsOneSelfContainedEscapedPage) {
  const json report = fake_report(fake_result(100, 200));
  bool missing = false;
  const std::string page = report_html(report, &missing);
  EXPECT_EQ(page.rfind("<!DOCTYPE html>", 0), 0U);
  EXPECT_NE(page.find("</html>"), std::string::npos);
  EXPECT_EQ(page.find("fake <processor>"), std::string::npos);
  EXPECT_NE(page.find("b &lt;&amp;&quot;"), std::string::npos);
  for (const char* outside : {"src=", "<link", "<script", "@import", "url(http"})
    EXPECT_EQ(page.find(outside), std::string::npos) << outside;
  if (missing) {
    EXPECT_NE(page.find("gnuplot was not found"), std::string::npos);
    GTEST_SKIP() << "gnuplot cannot be run: no plots to look at";
  }
  EXPECT_NE(page.find("<svg"), std::string::npos);
  EXPECT_EQ(page.find("<?xml"), std::string::npos);
}

TEST(Html, PlotsAreLeftOutWithoutGnuplot) {
  const std::string path = std::getenv("PATH");
  setenv("PATH", "/nonexistent", 1);
  bool missing = false;
  const std::string page = report_html(fake_report(fake_result(100, 200)), &missing);
  setenv("PATH", path.c_str(), 1);
  EXPECT_TRUE(missing);
  EXPECT_EQ(page.find("<svg"), std::string::npos);
  EXPECT_NE(page.find("gnuplot was not found"), std::string::npos);
}

TEST(Plot, FilterReturnsOutputAndReportsFailure) {
  const std::string big(1 << 20, 'x');  // larger than any socket buffer: both directions must be served
  EXPECT_EQ(run_filter("cat", big), big);
  EXPECT_EQ(run_filter("false", "x"), "");
  EXPECT_EQ(run_filter("no-such-program-here", "x"), "");
}

TEST(OutputFile, IsRenamedIntoPlaceOrNotAtAll) {
  const std::filesystem::path directory = std::filesystem::temp_directory_path() / ("omni_bench_test_" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const std::string path = directory / "report.json";
  {
    std::ofstream(path) << "old";
    OutputFile file(path);
  }  // not committed
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(text, "old");
  OutputFile file(path);
  file.commit("new");
  std::ifstream again(path);
  text.assign((std::istreambuf_iterator<char>(again)), {});
  EXPECT_EQ(text, "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);  // nothing left aside
  EXPECT_THROW(OutputFile(directory / "missing" / "report.json"), std::runtime_error);
  EXPECT_THROW(OutputFile(directory.string()), std::runtime_error);
  std::filesystem::remove_all(directory);
}

// rename() onto /dev/null, as root, would take it from the whole machine; a pipe stands for it here.
TEST(OutputFile, ReplacesNeitherDevicesNorLinks) {
  const std::filesystem::path directory = std::filesystem::temp_directory_path() / ("omni_bench_links_" + std::to_string(getpid()));
  std::filesystem::create_directory(directory);
  const std::string pipe = directory / "pipe", target = directory / "target", link = directory / "link";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THROW(OutputFile{pipe}, std::runtime_error);
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  std::ofstream(target) << "old";
  std::filesystem::create_symlink("target", link);
  OutputFile(link).commit("new");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  std::ifstream in(target);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(in)), {}), "new");
  std::filesystem::remove_all(directory);
}

TEST(Compare, AppliesTheSameRules) {
  const json a = fake_report(fake_result(100, 200));
  const ComparisonReport same = compare_reports(a, a, 0.08);
  for (const json& row : same.rows) EXPECT_EQ(row["ranking"], "not ranked: inside the spread");
  EXPECT_FALSE(same.slower);
  const ComparisonReport slower = compare_reports(a, fake_report(fake_result(150, 200)), 0.08);
  EXPECT_EQ(slower.rows[0]["ranking"], "slower");
  EXPECT_NEAR(slower.rows[0]["ratio"].get<double>(), 1.5, 1e-6);
  EXPECT_TRUE(slower.slower);
  const ComparisonReport faster = compare_reports(fake_report(fake_result(150, 200)), a, 0.08);
  EXPECT_EQ(faster.rows[0]["ranking"], "faster");
  EXPECT_FALSE(faster.slower);
  const ComparisonReport little = compare_reports(a, fake_report(fake_result(105, 200)), 0.08);
  EXPECT_EQ(little.rows[0]["ranking"], "not ranked: under the minimum effect");
  json other = a;
  other["machine"]["name"] = "another";
  EXPECT_NE(compare_reports(a, other, 0.08).text.find("machines differ in name"), std::string::npos);
  other["results"] = json::array();
  EXPECT_NE(compare_reports(a, other, 0.08).text.find("only in the first report"), std::string::npos);
}

TEST(Compare, RefusesWhatIsNoReport) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / ("omni_bench_bad_" + std::to_string(getpid()));
  EXPECT_THROW(read_report(path), std::runtime_error);
  for (const char* text : {"", "{", "[]", "{\"schema\":\"x\"}", "{\"schema\":\"omni-bench\",\"schema_version\":99}"}) {
    std::ofstream(path) << text;
    EXPECT_THROW(read_report(path), std::runtime_error) << text;
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace omnibench
