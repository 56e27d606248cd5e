// SPDX-License-Identifier: Apache-2.0
// Test support: omni-generate from outside, on model directories that tests put together.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"
#include "tools/common/safetensors.h"
#include "tools/probe/child.h"

namespace ref::cli::testing {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using probe::testing::Command;
using probe::testing::Outcome;
using probe::testing::run;

inline Command program(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OMNI_GENERATE);
  return {std::move(arguments), {}, nullptr};
}

// Runs a command, which must end well, and reads its JSON.
inline Json json_of(const Command& command) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << "signal " << outcome.signal << "\n" << outcome.err;
  Json json = Json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

// The exit code, one line on stderr with every word in it, nothing on stdout.
inline void expect_failure(const Command& command, int exit_code, const std::vector<std::string>& words) {
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, exit_code) << "signal " << outcome.signal << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(outcome.complaints().size(), 1U) << outcome.err;
  EXPECT_TRUE(outcome.err.starts_with("omni-generate: ")) << outcome.err;
  for (const std::string& word : words) EXPECT_NE(outcome.err.find(word), std::string::npos) << word << "\n" << outcome.err;
}

// The first `size` ids of the small tokenizer: its 256 byte tokens, and the merges among them.
inline Json small_tokenizer(int64_t size) {
  std::ifstream stream(std::string(OMNI_TEST_DATA) + "/tokenizer/spark_small/tokenizer.json");
  Json root = Json::parse(stream), added = Json::array(), vocabulary = Json::object(), merges = Json::array();
  std::set<std::string> kept;
  for (const Json& token : root["added_tokens"]) {
    if (token["id"].get<int64_t>() < size) added.push_back(token);
  }
  for (const auto& [token, id] : root["model"]["vocab"].items()) {
    if (id.get<int64_t>() >= size) continue;
    vocabulary[token] = id;
    kept.insert(token);
  }
  for (const Json& merge : root["model"]["merges"]) {
    const std::string left = merge.is_array() ? merge[0].get<std::string>() : merge.get<std::string>();
    const std::string joined =
        merge.is_array() ? left + merge[1].get<std::string>() : left.substr(0, left.find(' ')) + left.substr(left.find(' ') + 1);
    if (kept.contains(joined)) merges.push_back(merge);
  }
  root["added_tokens"] = added;
  root["model"]["vocab"] = vocabulary;
  root["model"]["merges"] = merges;
  return root;
}

// Golden checkpoint `a` (512 tokens) with a tokenizer that fits it, as a directory of its own that tests may change.
class ModelDirectory {
 public:
  explicit ModelDirectory(const std::string& golden = "a") {
    for (const auto& entry : fs::directory_iterator(std::string(OMNI_TEST_DATA) + "/spark/" + golden)) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with("golden")) fs::copy_file(entry.path(), directory_ / name);
    }
    static const std::string tokenizer = small_tokenizer(512).dump();
    directory_.write("tokenizer.json", tokenizer);
  }
  std::string path() const { return directory_.path().string(); }
  fs::path operator/(const std::string& name) const { return directory_ / name; }
  void write(const std::string& name, const std::string& bytes) const { directory_.write(name, bytes); }
  void change_config(const std::string& key, const Json& value) const {
    std::ifstream stream(directory_ / "config.json");
    Json root = Json::parse(stream);
    root[key] = value;
    write("config.json", root.dump());
  }

 private:
  omni_files::TemporaryDirectory directory_;
};

inline std::string joined(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text.append(text.empty() ? "" : ",").append(std::to_string(id));
  return text;
}

inline std::string read_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace ref::cli::testing
