// SPDX-License-Identifier: Apache-2.0
// Packed directories: how they come to be, and that nothing else does.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <sstream>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "reference/pack/staged_directory.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tests/support/unpack_matrix.h"

namespace ref {
namespace {

namespace fs = std::filesystem;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

const PackOptions kOptions{.weights = WeightType::kW4A8, .group = 32, .quantiser = Quantiser::kNearest};

std::string contents(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

// Names in a directory, sorted.
std::vector<std::string> names(const fs::path& directory) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(directory)) found.push_back(entry.path().filename().string());
  std::ranges::sort(found);
  return found;
}

// A directory with the source `m`, and whatever packing makes of it.
class PackedDirectory : public ::testing::Test {
 protected:
  PackedDirectory() {
    TinySpark{}.write(directory_ / "m");
    source_ = std::make_unique<Checkpoint>(Checkpoint::open(directory_ / "m"));
  }
  void pack(const fs::path& destination, bool replace = false, const Progress& progress = {}) const {
    pack_to_directory(*source_, destination, kOptions, replace, progress, nullptr);
  }
  // The line of the OutputError that packing throws.
  std::string refusal(const fs::path& destination, bool replace = false) const {
    try {
      pack(destination, replace);
    } catch (const OutputError& error) {
      return error.what();
    }
    return "packed";
  }

  TemporaryDirectory directory_;
  std::unique_ptr<Checkpoint> source_;
};

void expect_same(const ModelWeights& a, const ModelWeights& b) {
  ASSERT_EQ(a.matrices.size(), b.matrices.size());
  ASSERT_EQ(a.plains.size(), b.plains.size());
  for (const auto& [name, matrix] : a.matrices) {
    const Matrix& other = b.matrix(name, matrix.layout.n, matrix.layout.k);
    EXPECT_TRUE(std::ranges::equal(matrix.codes, other.codes)) << name;
    EXPECT_TRUE(std::ranges::equal(matrix.scales, other.scales)) << name;
    EXPECT_TRUE(std::ranges::equal(matrix.permutation, other.permutation)) << name;
  }
  for (const auto& [name, plain] : a.plains) EXPECT_TRUE(std::ranges::equal(plain.bytes, b.plain(name, plain.shape).bytes)) << name;
}

TEST_F(PackedDirectory, HoldsWhatMemoryWouldHold) {
  for (const WeightType type : {WeightType::kKeep, WeightType::kBf16, WeightType::kW8A8, WeightType::kW4A8, WeightType::kW4A16}) {
    const PackOptions options{.weights = type, .group = 32, .quantiser = Quantiser::kNearest};
    const auto memory = pack_in_memory(*source_, options, nullptr, {}, nullptr);
    pack_to_directory(*source_, directory_ / "packed", options, true, {}, nullptr);
    expect_same(*memory, *load_packed(directory_ / "packed", WeightsMemory::kMapped, nullptr));
    expect_same(*memory, *load_packed(directory_ / "packed", WeightsMemory::kHuge, nullptr));
    verify_packed(directory_ / "packed", {}, nullptr);
  }
}

TEST_F(PackedDirectory, TheBytesDependOnTheSourceAlone) {
  pack(directory_ / "a");
  const omni::Pool pool(3);
  pack_to_directory(*source_, directory_ / "b", kOptions, false, {}, pool.parallel());
  EXPECT_EQ(contents(directory_ / "a" / "weights.safetensors"), contents(directory_ / "b" / "weights.safetensors"));
  EXPECT_EQ(contents(directory_ / "a" / "weights.safetensors").find(directory_.path().string()), std::string::npos);
}

TEST_F(PackedDirectory, SideFilesGoAlong) {
  for (const char* name : {"tokenizer.json", "generation_config.json", "merges.txt"})
    std::ofstream(directory_ / "m" / name) << name;
  std::ofstream(directory_ / "m" / "README.md") << "not this one";
  pack(directory_ / "packed");
  EXPECT_EQ(names(directory_ / "packed"), (std::vector<std::string>{"config.json", "generation_config.json", "merges.txt",
                                                                    "tokenizer.json", "weights.safetensors"}));
  EXPECT_EQ(contents(directory_ / "packed" / "tokenizer.json"), "tokenizer.json");
  EXPECT_EQ(contents(directory_ / "packed" / "config.json"), contents(directory_ / "m" / "config.json"));
  EXPECT_EQ(names(directory_.path()), (std::vector<std::string>{"m", "packed"}));
}

// What a reader of safetensors, and one of this format, may rely on; odd shapes need padding.
TEST_F(PackedDirectory, TensorsAreAlignedAndWithoutGap) {
  const TinySpark odd{.layers = 1, .hidden = 72, .intermediate = 40, .heads = 3, .kv_heads = 3, .head_dim = 8, .vocabulary = 33};
  odd.write(directory_ / "odd");
  pack_to_directory(Checkpoint::open(directory_ / "odd"), directory_ / "packed", kOptions, false, {}, nullptr);
  const std::string file = contents(directory_ / "packed" / "weights.safetensors");
  uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  EXPECT_EQ((8 + length) % 64, 0U);
  ASSERT_EQ(file[8], '{');
  const auto header = nlohmann::json::parse(file.substr(8, length));
  std::map<uint64_t, std::pair<uint64_t, std::string>> ranges;
  for (const auto& [name, tensor] : header.items()) {
    if (name != "__metadata__") ranges[tensor["data_offsets"][0]] = {tensor["data_offsets"][1], name};
  }
  uint64_t end = 0;
  int pads = 0;
  for (const auto& [begin, rest] : ranges) {
    EXPECT_EQ(begin, end) << rest.second;
    end = rest.first;
    if (rest.second.starts_with("__pad.")) {
      ++pads;
      const std::string padding = file.substr(8 + length + begin, end - begin);
      EXPECT_EQ(padding.find_first_not_of('\0'), padding.npos);
    } else if (!rest.second.ends_with(".zeros")) {
      EXPECT_EQ(begin % 64, 0U) << rest.second;
    }
  }
  EXPECT_EQ(end, file.size() - 8 - length);
  EXPECT_GT(pads, 0);
  EXPECT_EQ(header["__metadata__"]["format"], "omni-packed");
  EXPECT_EQ(header["__metadata__"]["layout.lm_head"], "w8s.1:n=33,k=72,g=72,s=f32");
  load_packed(directory_ / "packed", WeightsMemory::kHuge, nullptr);
}

TEST_F(PackedDirectory, TheSourceIsNeverTheDestination) {  // AC-047
  const std::string before = contents(directory_ / "m" / "model.safetensors");
  fs::create_directory_symlink(directory_ / "m", directory_ / "link");
  EXPECT_TRUE(refusal(directory_ / "m", true).ends_with("m: is the source itself"));
  EXPECT_TRUE(refusal(directory_ / "m" / "..//m/", true).ends_with("m/: is the source itself"));
  EXPECT_TRUE(refusal(directory_ / "link", true).ends_with("link: is the source itself"));
  EXPECT_NE(refusal(directory_ / "m" / "packed").find("lies inside of the source"), std::string::npos);
  EXPECT_NE(refusal(directory_ / "link" / "packed").find("lies inside of the source"), std::string::npos);
  EXPECT_NE(refusal(directory_.path(), true).find("holds the source"), std::string::npos);
  EXPECT_EQ(contents(directory_ / "m" / "model.safetensors"), before);
  EXPECT_EQ(names(directory_ / "m"), (std::vector<std::string>{"config.json", "model.safetensors"}));
}

TEST_F(PackedDirectory, WhatExistsStaysUnlessItIsAPackedModel) {
  pack(directory_ / "packed");
  EXPECT_TRUE(refusal(directory_ / "packed").ends_with("packed: exists"));
  EXPECT_TRUE(refusal(directory_ / "packed/").ends_with("packed: exists"));
  EXPECT_EQ(refusal(directory_ / "packed", true), "packed");
  std::ofstream(directory_ / "packed" / "notes.txt") << "mine";
  EXPECT_NE(refusal(directory_ / "packed", true).find("as it holds notes.txt"), std::string::npos);

  fs::create_directory(directory_ / "photos");
  EXPECT_NE(refusal(directory_ / "photos", true).find("it is no packed model"), std::string::npos);
  fs::create_directory_symlink("nowhere", directory_ / "dangling");
  EXPECT_TRUE(refusal(directory_ / "dangling").ends_with("dangling: exists"));
  std::ofstream(directory_ / "file") << "text";
  EXPECT_NE(refusal(directory_ / "file", true).find("it is no packed model"), std::string::npos);
  EXPECT_NE(refusal(directory_ / "no" / "such").find("no: is no directory"), std::string::npos);
  EXPECT_EQ(names(directory_.path()), (std::vector<std::string>{"dangling", "file", "m", "packed", "photos"}));
}

TEST_F(PackedDirectory, AReplacementIsWhole) {
  pack_to_directory(*source_, directory_ / "packed", {.weights = WeightType::kKeep, .head = HeadType::kKeep}, false, {}, nullptr);
  std::ofstream(directory_ / "packed" / "merges.txt") << "of the old one";
  pack(directory_ / "packed", true);
  EXPECT_EQ(names(directory_ / "packed"), (std::vector<std::string>{"config.json", "weights.safetensors"}));
  EXPECT_EQ(names(directory_.path()), (std::vector<std::string>{"m", "packed"}));
  EXPECT_EQ(load_packed(directory_ / "packed", WeightsMemory::kMapped, nullptr)->matrices.at("lm_head").layout.format,
            OMNI_FORMAT_W8S);
}

// What a progress callback throws is how a program is interrupted.
TEST_F(PackedDirectory, AnInterruptedRunLeavesNothing) {
  int calls = 0;
  const Progress stop = [&](const std::string&, uint64_t done, uint64_t total) {
    EXPECT_LE(done, total);
    if (++calls == 9) throw std::runtime_error("stop");
  };
  EXPECT_THROW(pack(directory_ / "packed", false, stop), std::runtime_error);
  EXPECT_EQ(names(directory_.path()), (std::vector<std::string>{"m"}));
  pack(directory_ / "packed");
  calls = 0;
  const std::string before = contents(directory_ / "packed" / "weights.safetensors");
  EXPECT_THROW(pack(directory_ / "packed", true, stop), std::runtime_error);
  EXPECT_EQ(contents(directory_ / "packed" / "weights.safetensors"), before);
}

TEST_F(PackedDirectory, ProgressEndsAtTheTotal) {
  uint64_t last = 0, all = 0;
  pack(directory_ / "packed", false, [&](const std::string&, uint64_t done, uint64_t total) {
    EXPECT_GT(done, last);
    last = done;
    all = total;
  });
  EXPECT_EQ(last, all);
  EXPECT_GT(all, 0U);
}

// AC-047: killed in mid-write. The name is not there; the next run removes what was left.
TEST_F(PackedDirectory, AKilledRunLeavesOnlyWhatTheNextOneRemoves) {
  const pid_t child = ::fork();
  if (child == 0) {
    const omni::Pool alone(1);  // starts no thread: a forked child may not everywhere
    int calls = 0;
    const Progress kill = [&](const std::string&, uint64_t, uint64_t) {
      if (++calls == 9) ::raise(SIGKILL);
    };
    pack_to_directory(*source_, directory_ / "packed", kOptions, false, kill, alone.parallel());
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  const std::vector<std::string> left = names(directory_.path());
  ASSERT_EQ(left.size(), 2U);
  EXPECT_TRUE(left[0].starts_with(".packed.partial-"));
  EXPECT_EQ(left[1], "m");
  EXPECT_FALSE(is_packed(directory_ / "packed"));

  // Of others, who live, and of other names nothing is touched.
  fs::create_directory(directory_ / ".packed.partial-1");
  fs::create_directory(directory_ / ".packed.partial-x");
  fs::create_directory(directory_ / ".other.partial-999999999");
  pack(directory_ / "packed");
  EXPECT_EQ(names(directory_.path()),
            (std::vector<std::string>{".other.partial-999999999", ".packed.partial-1", ".packed.partial-x", "m", "packed"}));
}

TEST_F(PackedDirectory, StaleDirectoriesWithFilesOfOthersStay) {
  fs::create_directory(directory_ / ".packed.partial-999999999");
  std::ofstream(directory_ / ".packed.partial-999999999" / "config.json") << "{}";
  std::ofstream(directory_ / ".packed.partial-999999999" / "diary.txt") << "mine";
  pack(directory_ / "packed");
  EXPECT_EQ(names(directory_ / ".packed.partial-999999999"), (std::vector<std::string>{"diary.txt"}));
}

TEST_F(PackedDirectory, VerifyNamesTheTensorThatChanged) {
  pack(directory_ / "packed");
  const fs::path path = directory_ / "packed" / "weights.safetensors";
  const std::string tensor = "model.layers.1.mlp.down_proj.codes";
  uint64_t at = 0;
  {
    const auto file = omni_files::SafetensorsFile::open(path.string());
    const std::byte* first = nullptr;
    uint64_t bytes = 0;
    for (const auto& [name, entry] : file.tensors()) {
      if (first == nullptr || entry.bytes.data() < first) first = entry.bytes.data();
      bytes += entry.bytes.size();
    }
    at = fs::file_size(path) - bytes + static_cast<uint64_t>(file.at(tensor).bytes.data() - first) + 100;
  }
  std::string text = contents(path);
  text[at] = static_cast<char>(text[at] ^ 1);
  std::ofstream(path, std::ios::binary) << text;
  load_packed(directory_ / "packed", WeightsMemory::kMapped, nullptr);  // reads no tensor
  try {
    verify_packed(directory_ / "packed", {}, nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_TRUE(std::string(error.what()).ends_with("tensor \"" + tensor + "\" differs from its SHA-256")) << error.what();
  }
}

TEST_F(PackedDirectory, LookupTablesAreNotCopiedToLargePages) {
  pack(directory_ / "packed");
  const auto mapped = load_packed(directory_ / "packed", WeightsMemory::kMapped, nullptr);
  const auto huge = load_packed(directory_ / "packed", WeightsMemory::kHuge, nullptr);
  ASSERT_EQ(mapped->storage.size(), 1U);
  ASSERT_EQ(huge->storage.size(), 2U);
  const auto block = std::static_pointer_cast<const omni::PackedMemory>(huge->storage[1]);
  const auto inside = [&](Bytes bytes) {
    return bytes.data() >= block->bytes().data() && bytes.data() + bytes.size() <= block->bytes().data() + block->size();
  };
  EXPECT_TRUE(inside(huge->matrices.at("lm_head").codes));
  EXPECT_FALSE(inside(huge->plains.at("model.embedding.weight").bytes));
}

}  // namespace
}  // namespace ref
