// SPDX-License-Identifier: Apache-2.0
// omni-generate on checkpoints that are unusual, truncated, forged or hostile, and on a system that refuses AMX.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>

#include "reference/cli/program_for_test.h"
#include "tests/support/safetensors_writer.h"

namespace ref::cli::testing {
namespace {

const std::vector<std::string> kShort = {"The king", "-n", "5", "--temperature", "0"};

Command short_run(const std::string& model, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = kShort;
  arguments.insert(arguments.begin(), model);
  arguments.insert(arguments.end(), more.begin(), more.end());
  return program(std::move(arguments));
}

Json ids_of(const std::string& model) { return json_of(short_run(model, {"--json"}))["ids"]; }

// A model.safetensors with this content is refused at once, in a line that names the file.
void expect_refused(const std::string& content, const std::vector<std::string>& words) {
  const ModelDirectory own;
  own.write("model.safetensors", content);
  std::vector<std::string> all = words;
  all.emplace_back("model.safetensors");
  const auto start = std::chrono::steady_clock::now();
  expect_failure(short_run(own.path()), 3, all);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));  // a second, on a free machine
}

std::string with_header(const std::string& header, size_t data = 0) {
  std::string file(8, '\0');
  const uint64_t length = header.size();
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(data, '\0');
}

TEST(Files, MalformedHeaders) {
  expect_refused(std::string(8, '\0'), {});
  expect_refused(std::string(8, '\xff'), {"header length"});
  std::string longer = with_header("{}");
  longer[0] = 3;
  expect_refused(longer, {"header length 3"});
  for (const char* offsets : {"[]", "[0]", "[0,4,8]", "[8,4]", "[-4,4]", "[\"0\",\"4\"]", "[0,1e3]"}) {
    expect_refused(with_header(std::string(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":)") + offsets + "}}", 4), {"w"});
  }
}

TEST(Files, SizesThatDisagree) {
  const auto tensor = [](const char* dtype, const char* shape, const char* offsets, size_t data) {
    return with_header(std::string(R"({"w":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}",
                       data);
  };
  expect_refused(tensor("F16", "[4,4]", "[0,16]", 16), {"\"w\"", "size"});
  expect_refused(tensor("F32", "[4]", "[0,32]", 32), {"\"w\"", "size"});
  expect_refused(tensor("F32", "[4]", "[0,16]", 15), {"\"w\""});
  expect_refused(tensor("F24", "[4]", "[0,16]", 16), {"\"w\"", "F24"});
  expect_refused(tensor("F32", "[-4]", "[0,16]", 16), {"\"w\""});
  expect_refused(tensor("F32", "[4294967296,4294967296]", "[0,0]", 0), {"\"w\"", "overflow"});
}

TEST(Files, DuplicateNames) {
  expect_refused(
      with_header(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                  8),
      {"duplicate name \"w\""});
}

TEST(Files, WhatIsNoSafetensorsSaysWhatItIs) {
  expect_refused("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", {"git-lfs"});
  expect_refused("<!DOCTYPE html><html><body>404</body></html>", {"HTML"});
  expect_refused(std::string("PK\x03\x04") + std::string(60, '\0'), {"zip"});
  expect_refused("", {"empty"});
}

TEST(Files, ATruncatedCheckpointIsRefused) {
  const std::string whole = read_file(std::string(OMNI_TEST_DATA) + "/spark/a/model.safetensors");
  for (const size_t size : {whole.size() - 1, whole.size() / 2, size_t{100}, size_t{9}}) expect_refused(whole.substr(0, size), {});
}

TEST(Files, NamesOfAnIndexStayInTheDirectory) {
  for (const char* name : {"../outside.safetensors", "/absolute/outside.safetensors", "a/../../outside.safetensors"}) {
    const ModelDirectory own;
    fs::rename(own / "model.safetensors", fs::path(own.path()).parent_path() / "outside.safetensors");
    own.write("model.safetensors.index.json", Json{{"weight_map", {{"model.norm.weight", name}}}}.dump());
    expect_failure(short_run(own.path()), 3, {"model.safetensors.index.json", name});
    fs::remove(fs::path(own.path()).parent_path() / "outside.safetensors");
  }
}

// The layout of Hugging Face's cache: snapshots of links to blobs.
TEST(Files, LinksOfACacheAreFollowed) {
  const ModelDirectory own;
  const Json expected = ids_of(own.path());
  fs::create_directories(own / "models--x/blobs");
  fs::create_directories(own / "models--x/snapshots/abc");
  int blob = 0;
  for (const char* file : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const std::string hash = "00ff" + std::to_string(blob++);
    fs::rename(own / file, own / ("models--x/blobs/" + hash));
    fs::create_symlink("../../blobs/" + hash, own / (std::string("models--x/snapshots/abc/") + file));
  }
  EXPECT_EQ(ids_of((own / "models--x/snapshots/abc").string()), expected);
}

TEST(Files, TensorsAreComparedWithTheConfig) {
  for (const auto& [key, value, word] :
       std::initializer_list<std::tuple<const char*, Json, const char*>>{{"vocab_size", 513, "513"},
                                                                         {"hidden_size", 128, "128"},
                                                                         {"num_hidden_layers", 5, "layer"},
                                                                         {"intermediate_size", 176, "mlp"},
                                                                         {"model_type", "llama", "llama"},
                                                                         {"hidden_act", "silu", "silu"}}) {
    const ModelDirectory own;
    own.change_config(key, value);
    if (std::string(key) == "num_hidden_layers")
      own.change_config("layer_types", Json(std::vector<std::string>(5, "full_attention")));
    expect_failure(short_run(own.path()), 3, {own.path(), word});
  }
  const ModelDirectory own;
  own.change_config("vocab_size", 511);
  expect_failure(short_run(own.path()), 3, {"tokenizer.json", "512", "511"});
  own.write("config.json", "{");
  expect_failure(short_run(own.path()), 3, {"config.json"});
}

// A head or a frequency table that a model does not need changes nothing; shorter lists of layers are refused.
TEST(Files, TensorsOverTheNeededOnes) {
  const ModelDirectory own;
  const Json expected = ids_of(own.path());
  const auto file = omni_files::SafetensorsFile::open((own / "model.safetensors").string());
  omni_files::SafetensorsWriter writer;
  for (const auto& [name, tensor] : file.tensors()) writer.add(name, tensor);
  writer.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {4}, std::vector<float>{1, 2, 3, 4});
  writer.add("lm_head.weight", file.at("model.embedding.weight"));
  writer.add("foo.bar", "F32", {1}, std::vector<float>{1});
  const ModelDirectory other;
  writer.write(other / "model.safetensors");
  const Outcome outcome = run(short_run(other.path()));
  EXPECT_NE(outcome.err.find("foo.bar"), std::string::npos) << outcome.err;
  EXPECT_EQ(ids_of(other.path()), expected);
  other.change_config("layer_types", Json{"full_attention"});
  expect_failure(short_run(other.path()), 3, {"layer_types"});
}

// Nothing is sized by what the config says is possible.
TEST(Files, ManyPositionsTakeNoMemory) {
  const auto peak = [](int64_t positions) {
    const ModelDirectory own;
    own.change_config("max_position_embeddings", positions);
    return json_of(short_run(own.path(), {"--json", "--ctx", "128"}))["peak_resident_bytes"].get<int64_t>();
  };
  const int64_t usual = peak(2048);
  EXPECT_LT(peak(1048576) - usual, 100'000'000);
  EXPECT_LT(peak(50'000'000) - usual, 100'000'000);
}

// arch_prctl(ARCH_REQ_XCOMP_PERM) fails: without AMX, with the same answer.
#ifdef __x86_64__
bool refuse_amx(uint32_t error) {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x1023, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog fprog = {sizeof filter / sizeof filter[0], filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &fprog) == 0;
}

TEST(Systems, ARefusalOfAmxChangesNothing) {
  const ModelDirectory own;
  const std::vector<std::string> form = {"--json", "--weights", "w4a8"};
  const Json expected = json_of(short_run(own.path(), form))["ids"];
  for (const uint32_t error : {uint32_t{EINVAL}, uint32_t{EPERM}}) {
    Command command = short_run(own.path(), form);
    command.setup = [error] { return refuse_amx(error); };
    const Outcome outcome = run(command);
    if (outcome.exit_code == probe::testing::kSetupRefused) GTEST_SKIP() << "no seccomp here";
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    const Json json = Json::parse(outcome.out);
    EXPECT_EQ(json["ids"], expected);
    EXPECT_EQ(json["model"]["kernels"].dump().find("amx"), std::string::npos);
  }
}
#endif

}  // namespace
}  // namespace ref::cli::testing
