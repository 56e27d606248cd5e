// SPDX-License-Identifier: Apache-2.0
#include "reference/io/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "tests/support/safetensors_writer.h"
#include "tests/support/temporary_directory.h"

namespace ref {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;

std::string complaint(const fs::path& directory) {
  try {
    Checkpoint::open(directory);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

void write_text(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

void write_tensor(const fs::path& path, const std::string& name, float value) {
  fs::create_directories(path.parent_path());
  SafetensorsWriter().add<float>(name, "F32", {2}, {value, -value}).write(path);
}

void write_index(const fs::path& path, const json& map) { write_text(path, json{{"weight_map", map}}.dump()); }

class CheckpointTest : public testing::Test {
 protected:
  fs::path model() const { return temporary_.path() / "model"; }
  fs::path outside() const { return temporary_.path() / "outside.safetensors"; }
  void SetUp() override { fs::create_directories(model()); }

  TemporaryDirectory temporary_;
};

TEST_F(CheckpointTest, OneFile) {
  write_tensor(model() / "model.safetensors", "a", 1.0F);
  const Checkpoint checkpoint = Checkpoint::open(model());
  EXPECT_EQ(checkpoint.at("a").tensor->as<float>(), (std::vector<float>{1.0F, -1.0F}));
  EXPECT_EQ(checkpoint.find("b"), nullptr);
}

TEST_F(CheckpointTest, ShardsOfAnIndex) {
  write_tensor(model() / "model-1.safetensors", "a", 1.0F);
  write_tensor(model() / "part/model-2.safetensors", "b", 2.0F);
  write_index(model() / "model.safetensors.index.json", {{"a", "model-1.safetensors"}, {"b", "part/model-2.safetensors"}});
  const Checkpoint checkpoint = Checkpoint::open(model());
  EXPECT_EQ(checkpoint.tensors().size(), 2u);
  EXPECT_EQ(checkpoint.at("b").tensor->as<float>()[0], 2.0F);
}

// The layout of Hugging Face's cache: every file of a snapshot is a link to a blob outside of it.
TEST_F(CheckpointTest, LinksToBlobsAreFollowed) {
  const fs::path snapshot = temporary_.path() / "models--x/snapshots/abc", blobs = temporary_.path() / "models--x/blobs";
  fs::create_directories(snapshot);
  write_tensor(blobs / "0123", "a", 1.0F);
  write_tensor(blobs / "4567", "b", 2.0F);
  write_index(blobs / "89ab", {{"a", "model-00001-of-00002.safetensors"}, {"b", "model-00002-of-00002.safetensors"}});
  fs::create_symlink("../../blobs/0123", snapshot / "model-00001-of-00002.safetensors");
  fs::create_symlink("../../blobs/4567", snapshot / "model-00002-of-00002.safetensors");
  fs::create_symlink("../../blobs/89ab", snapshot / "model.safetensors.index.json");
  EXPECT_EQ(Checkpoint::open(snapshot).tensors().size(), 2u);
}

// The file exists and is sound: only its name is wrong. The complaint is about the name, so the file was not looked at.
TEST_F(CheckpointTest, NamesThatLeaveTheDirectoryAreRefused) {
  write_tensor(outside(), "a", 1.0F);
  for (const std::string& name : {std::string("../outside.safetensors"), outside().string(),
                                  std::string("a/../../outside.safetensors"), std::string("a/.."), std::string()}) {
    write_index(model() / "model.safetensors.index.json", {{"a", name}});
    EXPECT_EQ(complaint(model()), (model() / "model.safetensors.index.json").string() + ": weight_map names \"" + name +
                                      "\", which is not a file of the model directory");
  }
}

TEST_F(CheckpointTest, AnIndexMustBeTrue) {
  const std::string index = (model() / "model.safetensors.index.json").string();
  write_tensor(model() / "1.safetensors", "a", 1.0F);
  write_tensor(model() / "2.safetensors", "b", 1.0F);
  write_index(index, {{"a", "1.safetensors"}, {"b", "1.safetensors"}});
  EXPECT_EQ(complaint(model()), index + ": tensor \"b\" is not in 1.safetensors");
  write_index(index, {{"a", "2.safetensors"}, {"b", "1.safetensors"}});
  EXPECT_EQ(complaint(model()), index + ": tensor \"a\" is not in 2.safetensors");
  write_index(index, {{"a", 7}});
  EXPECT_EQ(complaint(model()), index + ": weight_map of \"a\" is no file name");
  write_index(index, {{"a", "3.safetensors"}});
  EXPECT_NE(complaint(model()).find("3.safetensors: cannot be opened"), std::string::npos) << complaint(model());
  for (const char* text : {"", "{", "[]", "{}", "{\"weight_map\": []}"}) {
    write_text(index, text);
    EXPECT_TRUE(complaint(model()).starts_with(index + ": ")) << text << ": " << complaint(model());
  }
}

TEST_F(CheckpointTest, ATensorInTwoShardsIsRefused) {
  write_tensor(model() / "1.safetensors", "a", 1.0F);
  SafetensorsWriter().add<float>("a", "F32", {1}, {1.0F}).add<float>("b", "F32", {1}, {1.0F}).write(model() / "2.safetensors");
  write_index(model() / "model.safetensors.index.json", {{"a", "1.safetensors"}, {"b", "2.safetensors"}});
  EXPECT_NE(complaint(model()).find("tensor \"a\" is also in "), std::string::npos) << complaint(model());
}

TEST_F(CheckpointTest, WhatIsNoModelDirectory) {
  EXPECT_EQ(complaint(model()), model().string() + ": has neither model.safetensors nor model.safetensors.index.json");
  EXPECT_EQ(complaint(model() / "none"), (model() / "none").string() + ": is no directory");
  fs::create_directories(model() / "model.safetensors");
  EXPECT_EQ(complaint(model()), (model() / "model.safetensors").string() + ": is no regular file");
}

TEST_F(CheckpointTest, AbsentTensorsAndOtherShapesAreNamed) {
  write_tensor(model() / "model.safetensors", "a", 1.0F);
  const Checkpoint checkpoint = Checkpoint::open(model());
  const auto line = [](const std::function<void()>& call) {
    try {
      call();
      return std::string();
    } catch (const Error& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(line([&] { checkpoint.at("b"); }), model().string() + ": has no tensor \"b\"");
  EXPECT_EQ(line([&] {
              checkpoint.at("a", {2, 2});
            }),
            (model() / "model.safetensors").string() + ": tensor \"a\" has the shape [2], expected [2, 2]");
}

TEST_F(CheckpointTest, JsonOfUnlikelySizeIsNotRead) {
  write_text(model() / "config.json", "{\"a\": \"" + std::string(1000, 'x') + "\"}");
  EXPECT_NO_THROW(read_json_object(model() / "config.json"));
  EXPECT_THROW(read_json_object(model() / "config.json", 100), Error);
}

}  // namespace
}  // namespace ref
