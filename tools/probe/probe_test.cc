// SPDX-License-Identifier: Apache-2.0
// omni-probe from outside: its output, its errors, and what it does in sandboxes and on other processors.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tools/probe/child.h"

namespace probe::testing {
namespace {

using Json = nlohmann::ordered_json;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

Command probe(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OMNI_PROBE);
  return {std::move(arguments), {}, nullptr};
}

// Runs `command`, which must succeed in silence and write JSON.
Json json_of(const Command& command) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal << "\n" << outcome.err;
  EXPECT_TRUE(outcome.complaints().empty()) << outcome.err;
  Json json = Json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

const Json& plain_json() {
  static const Json json = json_of(probe({"--json", "--no-bandwidth"}));
  return json;
}

// Exit code, and one line on stderr that holds every word; nothing on stdout.
void expect_failure(const Command& command, int exit_code, const std::vector<std::string>& words) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  ASSERT_EQ(outcome.complaints().size(), 1U) << outcome.err;
  for (const std::string& word : words) EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
}

std::string isa_of(const Json& json, const std::string& kernel) {
  for (const Json& row : json["probe"]["kernels"]) {
    if (row["name"] == kernel) return row["isa"];
  }
  return "";
}

class Files : public ::testing::Test {
 protected:
  Files() {
    std::string pattern = ::testing::TempDir() + "omni-probe-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
  }
  ~Files() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return (folder_ / name).string();
  }
  std::filesystem::path folder_;
};

TEST(Output, JsonHasTheMachineAndTheChoices) {
  const Json& json = plain_json();
  EXPECT_EQ(json["omni_profile"], 1);
  EXPECT_GE(json["machine"]["cores_online"], 1);
  EXPECT_GE(json["machine"]["cores_usable"], 1);
  EXPECT_NE(json["probe"]["code"], "unknown");
  EXPECT_TRUE(json["probe"]["bandwidth"].is_null());
  ASSERT_FALSE(json["probe"]["kernels"].empty());
  // Five shapes; class group, class torch with bf16 and with fp32, exact and fast, each for 1 and 16 rows; pack and dequant.
  ASSERT_EQ(json["probe"]["choices"].size(), 5U * (5 * 2 + 2));
  for (const Json& row : json["probe"]["kernels"]) {
    const bool amx = row["isa"].get<std::string>().rfind("amx", 0) == 0;
    EXPECT_EQ(row["timed_on_hardware"], !amx) << row;
  }
  for (const Json& choice : json["probe"]["choices"]) {
    EXPECT_NE(isa_of(json, choice["kernel"]), "") << choice;
    EXPECT_NE(choice["reason"], "") << choice;
  }
}

TEST(Output, TextNamesEverySection) {
  const Outcome outcome = run(probe({}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  for (const char* word :
       {"processor", "cores", "caches", "ISA", "AMX", "huge pages", "GB/s", "gate_up", "down", "q_k_v", "head"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
}

TEST(Output, TextSaysWhatWasNotTimed) {
  const std::string text = run(probe({"--no-bandwidth"})).out;
  const size_t at = text.find("gemm_exact_s8_w4s_16x64_amxint8 ");
  ASSERT_NE(at, std::string::npos);
  EXPECT_NE(text.substr(at, text.find('\n', at) - at).find("not timed on hardware"), std::string::npos);
}

TEST(Output, CapIsObeyed) {
  Command command = probe({"--json", "--no-bandwidth"});
  command.environment = {{"OMNI_MAX_ISA", "portable"}};
  const Json json = json_of(command);
  EXPECT_TRUE(json["machine"]["isa"].empty());
  for (const Json& choice : json["probe"]["choices"]) EXPECT_EQ(isa_of(json, choice["kernel"]), "portable") << choice;
}

// Every kernel of `op` that this machine can generate becomes text that ends in a return.
void expect_disassembly(const std::string& op) {
  int count = 0;
  for (const Json& row : plain_json()["probe"]["kernels"]) {
    if (row["op"] != op || row["code"] != "jit" || row["usable"] != true) continue;
    ++count;
    const std::string kernel = row["name"];
    const Outcome outcome = run(probe({"--disassemble", kernel, "--shape", "192x256"}));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.rfind(kernel, 0), 0U) << outcome.out.substr(0, 200);
    EXPECT_NE(outcome.out.find(" ret\n"), std::string::npos) << kernel;
    EXPECT_NE(outcome.out.find("mm0"), std::string::npos) << kernel;
    EXPECT_EQ(outcome.out.find("(not an instruction)"), std::string::npos) << kernel;
  }
  if (count == 0) GTEST_SKIP() << "this machine generates no " << op << " kernel";
}

TEST(Output, DisassemblyOfOneRow) { expect_disassembly("gemv"); }
TEST(Output, DisassemblyOfManyRows) { expect_disassembly("gemm"); }
TEST(Output, DisassemblyOfPacking) { expect_disassembly("pack"); }
TEST(Output, DisassemblyOfDequantisation) { expect_disassembly("dequant"); }

TEST_F(Files, ProfileRoundTrip) {
  const std::string path = write("machine.json", plain_json().dump());
  const Json again = json_of(probe({"--profile", path, "--json"}));
  EXPECT_EQ(again["machine"], plain_json()["machine"]);
  EXPECT_EQ(again["probe"]["profile_file"], path);
  EXPECT_EQ(again["probe"]["choices"], plain_json()["probe"]["choices"]);
}

TEST_F(Files, ProfileOfAnotherMachine) {
  Json other = plain_json();
  other["machine"]["name"] = "An old one";
  other["machine"]["isa"] = other["machine"]["isa_hardware"] = Json::array();
  other["machine"]["cores_online"] = 96;
  const Json json = json_of(probe({"--json", "--profile", write("old.json", other.dump())}));
  EXPECT_EQ(json["machine"], other["machine"]);
  for (const Json& choice : json["probe"]["choices"]) EXPECT_EQ(isa_of(json, choice["kernel"]), "portable") << choice;
}

TEST_F(Files, BadProfiles) {
  Json missing = plain_json();
  missing["machine"].erase("l2_bytes");
  const std::string path = write("missing.json", missing.dump());
  expect_failure(probe({"--profile", path}), 3, {"--profile", path, "\"l2_bytes\""});
  const std::string text = write("text.json", "hello");
  expect_failure(probe({"--profile", text}), 3, {text, "JSON"});
  const std::string nul = write("nul.json", plain_json().dump() + std::string("\0x", 2));
  expect_failure(probe({"--profile", nul}), 3, {nul});
  const std::string none = (folder_ / "none.json").string();
  expect_failure(probe({"--profile", none}), 3, {none});
  expect_failure(probe({"--profile", folder_.string()}), 3, {folder_.string(), "is a directory"});
}

TEST(Errors, Usage) {
  expect_failure(probe({"--nonsense"}), 2, {"--nonsense"});
  expect_failure(probe({"--shape", "0x5"}), 2, {"--shape", "0x5"});
  expect_failure(probe({"--shape", "3000000000x5"}), 2, {"--shape", "3000000000x5"});
  expect_failure(probe({"--m", "17"}), 2, {"--m", "17"});
  expect_failure(probe({"--disassemble", "gemv_nonsense"}), 2, {"--disassemble", "gemv_nonsense"});
}

TEST(Errors, Environment) {
  Command command = probe({"--no-bandwidth"});
  command.environment = {{"OMNI_MAX_ISA", "avx1024"}};
  expect_failure(command, 4, {"OMNI_MAX_ISA", "avx1024"});
}

bool hide_sys() {
  return unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", "/sys", "tmpfs", 0, nullptr) == 0;
}

bool hide_sys_and_cpuinfo() { return hide_sys() && mount("/dev/null", "/proc/cpuinfo", nullptr, MS_BIND, nullptr) == 0; }

void expect_same_features(bool (*hide)()) {  // AC-032
  Command command = probe({"--json", "--no-bandwidth"});
  command.setup = hide;
  const Outcome outcome = run(command);
  if (outcome.exit_code == kSetupRefused) GTEST_SKIP() << "a mount namespace needs root";
  ASSERT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json json = Json::parse(outcome.out);
  EXPECT_GE(json["machine"]["cores_online"], 1);
  EXPECT_EQ(json["machine"]["isa"], plain_json()["machine"]["isa"]);
  EXPECT_EQ(json["machine"]["name"], plain_json()["machine"]["name"]);
  EXPECT_EQ(json["machine"]["l1d_bytes"], plain_json()["machine"]["l1d_bytes"]);
  EXPECT_EQ(json["probe"]["choices"], plain_json()["probe"]["choices"]);
}

TEST(Sandbox, EmptySys) { expect_same_features(hide_sys); }
TEST(Sandbox, EmptySysAndCpuinfo) { expect_same_features(hide_sys_and_cpuinfo); }

// arch_prctl(ARCH_REQ_XCOMP_PERM) fails with `error`.
template <int error>
bool refuse_amx() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x1023, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void expect_no_amx(bool (*refuse)(), const char* error) {  // AC-030
  Command command = probe({"--json", "--no-bandwidth"});
  command.setup = refuse;
  const Outcome outcome = run(command);
  if (outcome.exit_code == kSetupRefused) GTEST_SKIP() << "seccomp filters are refused here";
  ASSERT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "");
  const Json json = Json::parse(outcome.out);
  const std::string reason = json["machine"]["amx_reason"];
  EXPECT_FALSE(json["probe"]["amx_usable"]);
  EXPECT_NE(reason, "");
  if (plain_json()["probe"]["amx_usable"] == true) {
    EXPECT_NE(reason.find(error), std::string::npos) << reason;
  }
  for (const Json& word : json["machine"]["isa"]) EXPECT_NE(word.get<std::string>().rfind("amx_", 0), 0U) << word;
}

TEST(Sandbox, AmxRequestFailsWithEinval) { expect_no_amx(refuse_amx<EINVAL>, "EINVAL"); }
TEST(Sandbox, AmxRequestFailsWithEperm) { expect_no_amx(refuse_amx<EPERM>, "EPERM"); }

// AC-031: the same binary on processors that lack what this one has.
Json on_processor(const std::string& qemu, const char* processor) {
  Command command = probe({"--json", "--no-bandwidth"});
  const std::vector<std::string> emulator = {qemu, "-cpu", processor};
  command.arguments.insert(command.arguments.begin(), emulator.begin(), emulator.end());
  return json_of(command);
}

TEST(OtherProcessor, Haswell) {
  const std::string qemu = find_program("qemu-x86_64-static");
  if (qemu.empty()) GTEST_SKIP() << "qemu-x86_64-static is not installed";
  if (kSanitized) GTEST_SKIP() << "sanitizers do not run under qemu";
  const Json json = on_processor(qemu, "Haswell");
  EXPECT_EQ(json["machine"]["isa"], Json({"avx2", "fma", "f16c", "bmi2"}));
  EXPECT_EQ(json["machine"]["name"], "Intel Core Processor (Haswell)");
  for (const Json& choice : json["probe"]["choices"]) {
    EXPECT_EQ(isa_of(json, choice["kernel"]).find("512"), std::string::npos) << choice;
    EXPECT_NE(choice["kernel"], "") << choice;
  }
}

TEST(OtherProcessor, Nehalem) {
  const std::string qemu = find_program("qemu-x86_64-static");
  if (qemu.empty()) GTEST_SKIP() << "qemu-x86_64-static is not installed";
  if (kSanitized) GTEST_SKIP() << "sanitizers do not run under qemu";
  const Json json = on_processor(qemu, "Nehalem");
  EXPECT_TRUE(json["machine"]["isa"].empty()) << json["machine"]["isa"];
  for (const Json& choice : json["probe"]["choices"]) EXPECT_EQ(isa_of(json, choice["kernel"]), "portable") << choice;
}

}  // namespace
}  // namespace probe::testing
