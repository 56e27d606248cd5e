// SPDX-License-Identifier: Apache-2.0
// omni-pack as a user runs it: exit codes, one line for each error, memory, full disks, signals.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "reference/pack/packer.h"
#include "reference/spark/synthetic.h"
#include "reference/text/tokenizer.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tools/probe/child.h"

namespace {

namespace fs = std::filesystem;
using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;
using probe::testing::Outcome;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

Outcome run(std::vector<std::string> arguments, std::function<bool()> setup = {}) {
  arguments.insert(arguments.begin(), OMNI_PACK);
  return probe::testing::run({std::move(arguments), {}, std::move(setup)});
}

std::vector<std::string> names(const fs::path& directory) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory)) found.push_back(entry.path().filename().string());
  std::ranges::sort(found);
  return found;
}

class OmniPack : public ::testing::Test {
 protected:
  OmniPack() { TinySpark{}.write(source_); }
  // A clean error: this code, one line that holds the text, nothing on stdout and nothing made.
  void expect_error(const Outcome& outcome, int code, const std::string& text) const {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("omni-pack: ")) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(out_));
    for (const std::string& name : names(directory_.path())) EXPECT_EQ(name.find("partial"), name.npos);
  }

  TemporaryDirectory directory_;
  fs::path source_ = directory_ / "m", out_ = directory_ / "out";
};

TEST_F(OmniPack, PacksVerifiesAndReports) {
  const std::string json = directory_ / "report.json";
  const Outcome packed = run({source_, out_, "--weights", "w4a16", "--group", "32", "--report=" + json});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_NE(packed.out.find("model.layers.1.mlp.gate_up_proj"), std::string::npos);
  EXPECT_NE(packed.out.find("tg4.1:n=192,k=64,g=32,s=bf16"), std::string::npos) << packed.out;
  EXPECT_NE(packed.err.find("note: self_attn.g_proj stays dense (bf16)"), std::string::npos);
  std::ifstream stream(json);
  const auto report = nlohmann::json::parse(stream);
  uint64_t bytes = 0;
  for (const auto& tensor : report["tensors"]) {
    bytes += tensor["bytes"].get<uint64_t>();
    const std::string layout = tensor["layout"];
    EXPECT_EQ(tensor["relative_error"].get<double>() > 0, layout.starts_with("tg4") || layout.starts_with("w8s")) << layout;
  }
  EXPECT_EQ(report["bytes"], bytes);

  EXPECT_EQ(run({"--verify", out_}).exit_code, 0);
  std::fstream file(out_ / "weights.safetensors", std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-1, std::ios::end);
  file.put('\x55');
  file.close();
  const Outcome changed = run({"--verify", out_});
  EXPECT_EQ(changed.exit_code, 3);
  EXPECT_NE(changed.err.find("differs from its SHA-256"), std::string::npos) << changed.err;

  EXPECT_EQ(run({source_, out_}).exit_code, 4);
  const Outcome quiet = run({source_, out_, "--force", "--quiet"});
  EXPECT_EQ(quiet.exit_code, 0);
  EXPECT_EQ(quiet.err + quiet.out, "");
  EXPECT_EQ(run({"--verify", out_, "--quiet"}).exit_code, 0);
}

TEST_F(OmniPack, UsageErrorsAreLines) {
  expect_error(run({}), 2, "SRC and DST");
  expect_error(run({source_}), 2, "SRC and DST");
  expect_error(run({source_, out_, "third"}), 2, "PATHS");
  expect_error(run({source_, out_, "--weights", "w3"}), 2, "--weights");
  expect_error(run({source_, out_, "--group", "48"}), 2, "--group");
  expect_error(run({source_, out_, "--head", "w2"}), 2, "--head");
  expect_error(run({source_, out_, "--nonsense"}), 2, "--nonsense");
  expect_error(run({source_, out_, "--synthetic", "spark-1.7b"}), 2, "DST");
  expect_error(run({out_, "--synthetic", "spark-9b"}), 2, "--synthetic");
  expect_error(run({out_, "--verify", out_}), 2, "--verify");
  expect_error(run({source_, out_, "--quantiser", "gptq"}), 3, "--calibrate");
  EXPECT_EQ(run({"--help"}).exit_code, 0);
  EXPECT_EQ(run({"--version"}).exit_code, 0);
}

// Codes of a layer and of the head.
std::string codes_in(const fs::path& packed) {
  const auto file = omni_files::SafetensorsFile::open(packed / "weights.safetensors");
  std::string codes;
  for (const char* tensor : {"model.layers.1.mlp.down_proj.codes", "lm_head.codes"}) {
    const std::span<const std::byte> bytes = file.at(tensor).bytes;
    codes.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  return codes;
}

// A text changes what is chosen, the threads do not.
TEST_F(OmniPack, CalibratesWithAText) {
  TinySpark model;
  model.vocabulary = 512;
  model.write(directory_ / "m");
  std::ofstream(source_ / "tokenizer.json") << ref::spark::synthetic_tokenizer(512);
  std::string text;
  for (int i = 0; i < 400; ++i) text += "words of a text " + std::to_string(i * i) + "\n";
  const std::string file = directory_ / "text.txt";
  directory_.write("text.txt", text);
  const auto pack = [&](const std::string& name, std::vector<std::string> options) {
    std::vector<std::string> arguments = {source_, directory_ / name, "--weights", "w4a8",   "--group",
                                          "32",    "--head",          "w4",        "--quiet"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(run({"--verify", directory_ / name, "--quiet"}).exit_code, 0);
    return codes_in(directory_ / name);
  };
  const std::string plain = pack("plain", {}), weighted = pack("weighted", {"--calibrate", file}),
                    gptq = pack("gptq", {"--calibrate", file, "--quantiser", "gptq", "--threads", "1"});
  EXPECT_TRUE(plain != weighted && weighted != gptq && plain != gptq);
  EXPECT_TRUE(pack("again", {"--calibrate", file, "--quantiser", "gptq", "--threads", "3"}) == gptq);
  EXPECT_TRUE(pack("short", {"--calibrate", file, "--calibrate-windows", "1"}) != weighted);

  expect_error(run({source_, out_, "--calibrate", directory_ / "none.txt"}), 3, "none.txt: cannot be opened");
  expect_error(run({source_, out_, "--calibrate", file, "--weights", "w8a8"}), 2, "4 bits");
  expect_error(run({source_, out_, "--calibrate", file, "--quantiser", "nearest"}), 2, "nearest");
  expect_error(run({out_, "--synthetic", "spark-tiny", "--calibrate", file}), 2, "--calibrate");
  expect_error(run({source_, out_, "--calibrate", file, "--calibrate-windows", "0"}), 2, "--calibrate-windows");
  fs::remove(source_ / "tokenizer.json");
  expect_error(run({source_, out_, "--calibrate", file}), 3, "tokenizer.json");
}

TEST_F(OmniPack, InputErrorsAreLines) {
  expect_error(run({directory_ / "nowhere", out_}), 3, "nowhere: is no directory");
  fs::create_directory(directory_ / "empty");
  expect_error(run({directory_ / "empty", out_}), 3, "has neither model.safetensors nor");
  fs::remove(source_ / "config.json");
  expect_error(run({source_, out_}), 3, "config.json: cannot be opened");
  expect_error(run({"--verify", source_}), 3, "weights.safetensors: cannot be opened");
  EXPECT_EQ(run({directory_ / "packed", "--synthetic", "spark-tiny"}).exit_code, 0);
  expect_error(run({directory_ / "packed", out_}), 3, "packed: is packed already");
}

std::string header(const std::string& json) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(json.size());
  file[1] = static_cast<char>(json.size() >> 8);
  return file + json;
}

// AC-041, AC-042, AC-043, AC-046.
TEST_F(OmniPack, MalformedFilesAreLines) {
  const auto tensor = [](const std::string& dtype, const std::string& shape, const std::string& offsets, int bytes) {
    return header(R"({"w":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}") +
           std::string(static_cast<size_t>(bytes), '\0');
  };
  const std::pair<std::string, std::string> files[] = {
      {std::string(8, '\0'), "no JSON"},
      {std::string(8, '\xFF'), "header length"},
      {std::string("\x09\0\0\0\0\0\0\0", 8), "header length"},
      {tensor("F32", "[1]", "[]", 4), "\"w\""},
      {tensor("F32", "[1]", "[0]", 4), "\"w\""},
      {tensor("F32", "[1]", "[0,4,8]", 8), "\"w\""},
      {tensor("F32", "[1]", "[8,4]", 8), "\"w\""},
      {tensor("F32", "[2]", "[-4,4]", 4), "\"w\""},
      {tensor("F32", "[1]", R"(["0","4"])", 4), "\"w\""},
      {tensor("F32", "[250]", "[0,1e3]", 1000), "\"w\""},
      {tensor("F16", "[4,4]", "[0,16]", 16), "\"w\""},
      {tensor("F32", "[4]", "[0,32]", 32), "\"w\""},
      {tensor("F32", "[4]", "[0,16]", 15), "\"w\""},
      {tensor("F24", "[4]", "[0,12]", 12), "F24"},
      {tensor("F32", "[-4]", "[0,16]", 16), "\"w\""},
      {tensor("F32", "[4294967296,4294967296]", "[0,0]", 0), "overflows"},
      {header(R"({"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}})") +
           "12345678",
       "duplicate name \"w\""},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git-lfs pointer"},
      {"<!DOCTYPE html><html></html>", "HTML"},
      {std::string("PK\x03\x04") + "rest", "zip"},
      {"", "is empty"}};
  for (const auto& [bytes, text] : files) {
    std::ofstream(source_ / "model.safetensors", std::ios::binary) << bytes;
    const Outcome outcome = run({source_, out_});
    expect_error(outcome, 3, text);
    EXPECT_NE(outcome.err.find("model.safetensors"), std::string::npos);
  }
}

TEST_F(OmniPack, NamesOfAnIndexStayInside) {  // AC-044
  fs::rename(source_ / "model.safetensors", directory_ / "outside.safetensors");
  for (const std::string& name : {std::string("../outside.safetensors"), (directory_ / "outside.safetensors").string(),
                                  std::string("a/../../outside.safetensors")}) {
    std::ofstream(source_ / "model.safetensors.index.json") << nlohmann::json({{"weight_map", {{"model.norm.weight", name}}}});
    expect_error(run({source_, out_}), 3, "which is not a file of the model directory");
  }
}

TEST_F(OmniPack, LinksOfACacheAreFollowed) {  // AC-045
  const fs::path blobs = directory_ / "models--x" / "blobs", snapshot = directory_ / "models--x" / "snapshots" / "abc";
  fs::create_directories(blobs);
  fs::create_directories(snapshot);
  fs::rename(source_ / "config.json", blobs / "aa");
  fs::rename(source_ / "model.safetensors", blobs / "bb");
  fs::create_symlink("../../blobs/aa", snapshot / "config.json");
  fs::create_symlink("../../blobs/bb", snapshot / "model.safetensors");
  EXPECT_EQ(run({snapshot, out_, "--quiet"}).exit_code, 0);
  EXPECT_FALSE(fs::is_symlink(out_ / "config.json"));
  EXPECT_EQ(run({"--verify", out_}).exit_code, 0);
}

// AC-047, as far as no disk needs to be full: a limit on file sizes fails the same way.
TEST_F(OmniPack, AFullDiskIsALine) {
  for (const rlim_t limit : {rlim_t{0}, rlim_t{100}, rlim_t{20000}}) {
    const Outcome outcome = run({source_, out_}, [=] {
      const rlimit size{limit, limit};
      return ::setrlimit(RLIMIT_FSIZE, &size) == 0;
    });
    expect_error(outcome, 4, (out_ / "").string());
    EXPECT_NE(outcome.err.find("File too large"), std::string::npos) << outcome.err;
  }
  expect_error(run({source_, directory_ / "no" / "out"}), 4, "no: is no directory");
  expect_error(run({source_, source_ / "out"}), 4, "lies inside of the source");
}

TEST_F(OmniPack, SignalsLeaveNothing) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::execl(OMNI_PACK, OMNI_PACK, "--synthetic", "spark-1.7b", out_.c_str(), "--quiet", "--weights", "w4a8", nullptr);
      ::_exit(127);
    }
    // As soon as the directory is there the program is at work on a gigabyte.
    for (int i = 0; i < 2000 && names(directory_.path()).size() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ::kill(child, signal);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), code);
    EXPECT_EQ(names(directory_.path()), (std::vector<std::string>{"m"}));
  }
}

// Zeros that take no room on the disk: a checkpoint of any size.
void write_sparse(const fs::path& directory, const TinySpark& shape) {
  fs::create_directories(directory);
  std::ofstream(directory / "config.json") << shape.config();
  nlohmann::json header = nlohmann::json::object();
  uint64_t end = 0;
  const auto put = [&](const std::string& name, std::vector<int64_t> extents) {
    uint64_t bytes = 2;
    for (const int64_t extent : extents) bytes *= static_cast<uint64_t>(extent);
    header[name] = {{"dtype", "BF16"}, {"shape", extents}, {"data_offsets", {end, end + bytes}}};
    end += bytes;
  };
  put("model.embedding.weight", {shape.vocabulary, shape.hidden});
  put("model.norm.weight", {shape.hidden});
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i);
    put(layer + ".input_layernorm.weight", {shape.hidden});
    put(layer + ".post_attention_layernorm.weight", {shape.hidden});
    put(layer + ".self_attn.q_k_v_proj.weight", {(shape.heads + 2 * shape.kv_heads) * shape.head_dim, shape.hidden});
    put(layer + ".self_attn.g_proj.weight", {shape.heads, shape.hidden});
    put(layer + ".self_attn.out_proj.weight", {shape.hidden, shape.heads * shape.head_dim});
    put(layer + ".mlp.gate_proj.weight", {shape.intermediate, shape.hidden});
    put(layer + ".mlp.up_proj.weight", {shape.intermediate, shape.hidden});
    put(layer + ".mlp.down_proj.weight", {shape.hidden, shape.intermediate});
  }
  std::string text = header.dump();
  const uint64_t length = text.size();
  std::ofstream file(directory / "model.safetensors", std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << text;
  file.close();
  fs::resize_file(directory / "model.safetensors", 8 + length + end);
}

// Largest resident memory of a run, in MiB.
int64_t peak_mib(const std::vector<std::string>& arguments) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv = {const_cast<char*>(OMNI_PACK)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(OMNI_PACK, argv.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  EXPECT_EQ(::wait4(child, &status, 0, &usage), child);
  EXPECT_EQ(status, 0);
  return usage.ru_maxrss / 1024;
}

// 32 MiB of slices, the scales, and what a program is: whatever the model.
TEST_F(OmniPack, MemoryDoesNotGrowWithTheModel) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take memory of their own";
  TinySpark shape{
      .layers = 1, .hidden = 2048, .intermediate = 6656, .heads = 8, .kv_heads = 2, .head_dim = 256, .vocabulary = 8192};
  write_sparse(directory_ / "one", shape);
  shape.layers = 3;
  shape.vocabulary = 32768;
  write_sparse(directory_ / "three", shape);
  ASSERT_GT(fs::file_size(directory_ / "three" / "model.safetensors"), uint64_t{400} << 20);
  for (const std::string weights : {"w4a16", "bf16"}) {
    const auto pack = [&](const char* name) {
      const int64_t peak =
          peak_mib({directory_ / name, out_, "--weights", weights, "--quantiser", "nearest", "--quiet", "--threads", "2"});
      fs::remove_all(out_);
      return peak;
    };
    const int64_t one = pack("one"), three = pack("three");
    EXPECT_LT(three, 100) << weights;
    EXPECT_LT(three, one + 16) << weights;
    RecordProperty("peak_mib_" + weights, static_cast<int>(three));
  }
}

TEST_F(OmniPack, SyntheticModelsAreWhole) {
  for (const char* weights : {"w4a16", "w4a8", "w8a8", "bf16"}) {
    ASSERT_EQ(run({out_, "--synthetic", "spark-tiny", "--weights", weights, "--force", "--quiet"}).exit_code, 0);
    const auto model = ref::load_packed(out_, ref::WeightsMemory::kMapped, nullptr);
    EXPECT_EQ(model->config["num_hidden_layers"], 4);
    EXPECT_EQ(run({"--verify", out_}).exit_code, 0);
  }
  const ref::Tokenizer tokenizer = ref::Tokenizer::load(out_ / "tokenizer.json");
  const auto ids = tokenizer.encode("a \xE4\xB8\xAD!");
  EXPECT_EQ(ids.size(), 6U);
  EXPECT_EQ(tokenizer.decode(ids, false), "a \xE4\xB8\xAD!");

  ASSERT_EQ(run({directory_ / "hf", "--synthetic-source", "spark-tiny", "--quiet"}).exit_code, 0);
  const Outcome packed = run({directory_ / "hf", out_, "--force", "--strict", "--weights", "w4a8"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
}

}  // namespace
