// SPDX-License-Identifier: Apache-2.0
// Packed directories that are not what they should be: one line each, and never a crash.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>
#include <sstream>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"

namespace ref {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

constexpr const char* kFile = "weights.safetensors";

class PackedReader : public ::testing::Test {
 protected:
  PackedReader() {
    TinySpark{.layers = 1}.write(directory_ / "m");
    pack_to_directory(Checkpoint::open(directory_ / "m"), directory_ / "p",
                      {.weights = WeightType::kW4A8, .group = 32, .quantiser = Quantiser::kNearest}, false, {}, nullptr);
    std::ifstream stream(directory_ / "p" / kFile, std::ios::binary);
    std::ostringstream text;
    text << stream.rdbuf();
    file_ = text.str();
    std::memcpy(&length_, file_.data(), 8);
    header_ = json::parse(file_.substr(8, length_));
  }

  void write(const std::string& text) const { std::ofstream(directory_ / "p" / kFile, std::ios::binary) << text; }
  // The header, as long as it was.
  void write(const json& header) const {
    std::string text = header.dump();
    ASSERT_LE(text.size(), length_);
    text.resize(length_, ' ');
    write(file_.substr(0, 8) + text + file_.substr(8 + length_));
  }
  // The line of the Error, or "loaded".
  std::string load() const {
    std::string line = "loaded";
    for (const WeightsMemory memory : {WeightsMemory::kMapped, WeightsMemory::kHuge}) {
      try {
        load_packed(directory_ / "p", memory, nullptr);
      } catch (const Error& error) {
        line = error.what();
      }
    }
    EXPECT_EQ(line.find('\n'), line.npos);
    EXPECT_TRUE(line == "loaded" || line.find((directory_ / "p").string()) == 0) << line;
    return line;
  }
  void expect_error(const std::string& text) const {
    const std::string line = load();
    EXPECT_NE(line.find(text), line.npos) << line;
  }

  TemporaryDirectory directory_;
  std::string file_;
  uint64_t length_ = 0;
  json header_;
};

TEST_F(PackedReader, OtherVersionsAreRefused) {  // AC-017
  header_["__metadata__"]["format_version"] = "2";
  write(header_);
  expect_error("has the format version 2, this program reads 1: pack the model again");
  header_["__metadata__"]["format_version"] = "1";
  header_["__metadata__"]["layout.lm_head"] = "w8s.2:n=80,k=64,g=64,s=f32";
  write(header_);
  expect_error(
      "tensor \"lm_head\" has the layout \"w8s.2:n=80,k=64,g=64,s=f32\", which this version cannot read: pack the model again");
  header_["__metadata__"]["layout.lm_head"] = "gptq.1:n=80,k=64,g=64,s=f32";
  write(header_);
  expect_error("tensor \"lm_head\" has the layout");
  header_["__metadata__"]["format"] = "pt";
  write(header_);
  expect_error("is no packed model");
  header_.erase("__metadata__");
  write(header_);
  expect_error("is no packed model");
}

TEST_F(PackedReader, LayoutsTensorsAndConfigMustAgree) {
  const auto with_layout = [&](const std::string& text) {
    json header = header_;
    header["__metadata__"]["layout.lm_head"] = text;
    write(header);
  };
  with_layout("w8s.1:n=96,k=64,g=64,s=f32");
  expect_error("tensor \"lm_head.codes\" is U8 [");
  with_layout("w8s.1:n=80,k=64,g=64,s=bf16");
  expect_error("tensor \"lm_head.scales\" is F32 [1, 80], its layout says BF16 [1, 80]");
  with_layout("w16.1:n=80,k=32,g=32,s=none");  // the same bytes of another shape
  expect_error("matrix \"lm_head\" is [80, 32], the config says [80, 64]");
  with_layout("w8s.1:n=9223372036854775807,k=64,g=64,s=f32");
  expect_error("tensor \"lm_head\" has the layout");

  json header = header_;
  header["__metadata__"].erase("layout.lm_head");
  write(header);
  expect_error("tensor \"lm_head.codes\" has the type U8 and belongs to no matrix");
  header = header_;
  header["model.norm"] = header["model.norm.weight"];
  header.erase("model.norm.weight");
  write(header);
  expect_error("has no tensor \"model.norm.weight\"");

  write(file_);
  json config = TinySpark{.layers = 1}.config();
  config["vocab_size"] = 81;
  std::ofstream(directory_ / "p" / "config.json") << config;
  expect_error("matrix \"lm_head\" is [80, 64], the config says [81, 64]");
  fs::remove(directory_ / "p" / "config.json");
  expect_error("config.json: cannot be opened");
}

TEST_F(PackedReader, ZeroPointsStandBehindTheirScales) {
  const std::string zeros = "model.layers.0.self_attn.out_proj.zeros", scales = "model.layers.0.self_attn.out_proj.scales";
  json header = header_;
  const uint64_t begin = header[scales]["data_offsets"][0], end = header[zeros]["data_offsets"][1];
  const uint64_t middle = begin + end - header[scales]["data_offsets"][1].get<uint64_t>();
  header[zeros]["data_offsets"] = {begin, middle};
  header[scales]["data_offsets"] = {middle, end};
  write(header);
  expect_error("tensor \"" + zeros + "\" does not follow the scales");
}

TEST_F(PackedReader, PermutationsArePermutations) {
  const std::string name = "model.layers.0.self_attn.out_proj.permutation";
  json header = header_;
  // The tensor of norms serves as 64 numbers: no permutation of them.
  const auto norm = header["model.layers.0.self_attn.g_proj.weight"];  // bf16 [4, 64]: 512 bytes
  header.erase("model.layers.0.self_attn.g_proj.weight");
  header["__metadata__"].erase("sha256.model.layers.0.self_attn.g_proj.weight");
  const uint64_t begin = norm["data_offsets"][0];
  header[name] = {{"dtype", "I32"}, {"shape", {64}}, {"data_offsets", {begin, begin + 256}}};
  header["rest"] = {{"dtype", "F32"}, {"shape", {64}}, {"data_offsets", {begin + 256, begin + 512}}};
  write(header);
  expect_error("is no permutation of its inputs");
}

TEST_F(PackedReader, EveryKindOfTruncationIsSeen) {
  for (size_t bytes = 0; bytes < file_.size(); bytes += bytes < 40 ? 1 : 997) {
    write(file_.substr(0, bytes));
    EXPECT_NE(load(), "loaded") << bytes;
  }
  write(file_.substr(0, file_.size() - 1));
  EXPECT_NE(load(), "loaded");
  write(file_ + "x");
  EXPECT_NE(load(), "loaded");
  write(file_);
  EXPECT_EQ(load(), "loaded");
}

// Random edits of the header: an error of one line, or a model whose every span lies in the file (the sanitizers watch the rest).
TEST_F(PackedReader, RandomHeadersDoNoHarm) {
  std::mt19937 random(20);
  const auto start = std::chrono::steady_clock::now();
  const std::string digits = "0123456789-,:[]{}\" abfx.";
  int loaded = 0;
  for (int i = 0; i < 1500 && std::chrono::steady_clock::now() - start < std::chrono::seconds(20); ++i) {
    std::string text = file_;
    const int edits = 1 + static_cast<int>(random() % 3);
    for (int edit = 0; edit < edits; ++edit) {
      const size_t at = i % 8 == 0 ? random() % 8 : 8 + random() % length_;
      text[at] = i % 8 == 0 ? static_cast<char>(random()) : digits[random() % digits.size()];
    }
    write(text);
    try {
      const auto weights = load_packed(directory_ / "p", WeightsMemory::kMapped, nullptr);
      ++loaded;
      uint64_t sum = 0;
      for (const auto& [name, matrix] : weights->matrices) {
        for (const std::byte byte : matrix.codes) sum += std::to_integer<uint64_t>(byte);
        for (const std::byte byte : matrix.scales) sum += std::to_integer<uint64_t>(byte);
      }
      EXPECT_GT(sum, 0U);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_LT(loaded, 1500);
}

TEST_F(PackedReader, ConfigsAreDistrusted) {
  for (const char* text : {"", "[]", "{", "{\"model_type\": 3}", "{\"model_type\": \"spark2_5\", \"num_hidden_layers\": 1e9}"}) {
    std::ofstream(directory_ / "p" / "config.json") << text;
    EXPECT_NE(load(), "loaded") << text;
  }
}

}  // namespace
}  // namespace ref
