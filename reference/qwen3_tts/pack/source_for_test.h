// SPDX-License-Identifier: Apache-2.0
// Golden checkpoints for the tests of packing, and what packing should make of their tensors, written down once more: by the
// published names and from the definition of each operation, not from the list of parts.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/pack/plan.h"
#include "tests/support/safetensors_writer.h"

namespace ref::tts::test {

// In tests/data/tts, else where OMNI_GOLDENS has it; empty when it is in neither.
inline std::filesystem::path source_path(const std::string& model) {
  const std::filesystem::path here = std::filesystem::path(OMNI_TEST_DATA) / "tts" / model;
  if (std::filesystem::exists(here)) return here;
  const char* goldens = std::getenv("OMNI_GOLDENS");
  const std::filesystem::path there = std::filesystem::path(goldens == nullptr ? "" : goldens) / "tts" / model;
  return std::filesystem::exists(there) ? there : std::filesystem::path();
}

inline std::vector<float> values_of(const TensorView& view) { return widen(Plain{plain_type(view), view.shape(), view.bytes()}); }

// Matrix or plain tensor of a packed model.
struct Expected {
  std::vector<int64_t> shape;
  std::vector<float> values;
};

// Everything that a checkpoint with nothing quantised should become.
class ExpectedModel {
 public:
  ExpectedModel(const Checkpoint& source, bool encoders) : source_(source) {
    for (const auto& [name, view] : source.tensors()) {
      const bool encoder = name.starts_with("encoder.") || name.starts_with("speaker_encoder.");
      if (encoders || !encoder) add(name, view);
    }
  }

  std::map<std::string, Expected> matrices, plains;

 private:
  void add(const std::string& name, const TensorView& view) {
    static const std::regex kUnused(
        R"(decoder\.quantizer\..*\.input_proj\.weight|encoder\.quantizer\..*(\.output_proj\.weight|\.initialized))");
    static const std::regex kQ(R"((.*)\.q_proj\.weight)"), kGate(R"((.*)\.gate_proj\.weight)"),
        kOther(R"(.*\.(k_proj|v_proj|up_proj)\.weight)"), kSum(R"((.*)\.0\.(_?codebook)\.(embedding_sum|embed_sum))"),
        kLevel(R"(.*codebook\.(embedding_sum|embed_sum|cluster_usage))");
    std::smatch match;
    if (std::regex_match(name, kUnused) || std::regex_match(name, kOther)) return;
    if (std::regex_match(name, match, kSum)) return add_codebook(match[1], match[2], match[3], view);
    if (std::regex_match(name, kLevel)) return;
    if (std::regex_match(name, match, kQ)) return add_stack(match[1].str() + ".", "q_k_v_proj", {"q_proj", "k_proj", "v_proj"});
    if (std::regex_match(name, match, kGate)) return add_stack(match[1].str() + ".", "gate_up_proj", {"gate_proj", "up_proj"});
    const size_t rank = view.shape().size();
    if (rank == 1 || name.find("embedding") != name.npos) {
      plains[name] = {view.shape(), values_of(view)};
    } else if (rank == 2) {
      matrices[module_of(name)] = {view.shape(), values_of(view)};
    } else {
      add_convolution(name, view);
    }
  }

  static std::string module_of(const std::string& name) { return name.substr(0, name.size() - std::string(".weight").size()); }

  void add_stack(const std::string& prefix, const char* name, const std::vector<std::string>& pieces) {
    Expected& all = matrices[prefix + name];
    all.shape = {0, 0};
    for (const std::string& piece : pieces) {
      const TensorView& view = source_.at(prefix + piece + ".weight");
      all.shape = {all.shape[0] + view.shape()[0], view.shape()[1]};
      const std::vector<float> rows = values_of(view);
      all.values.insert(all.values.end(), rows.begin(), rows.end());
    }
  }

  // Of a transposed convolution, its stride; 0 of any other.
  static int64_t stride_of(const std::string& name) {
    static const std::regex kUpsample(R"(decoder\.upsample\.\d\.0\.conv\.weight)"),
        kBlock(R"(decoder\.decoder\.(\d)\.block\.1\.conv\.weight)");
    std::smatch match;
    if (std::regex_match(name, kUpsample)) return 2;
    const int64_t rates[] = {0, 8, 5, 4, 3};
    return std::regex_match(name, match, kBlock) ? rates[std::stoi(match[1])] : 0;
  }

  void add_convolution(const std::string& name, const TensorView& view) {
    const std::vector<float> w = values_of(view);
    const int64_t a = view.shape()[0], b = view.shape()[1], taps = view.shape()[2];
    const auto at = [&](int64_t i, int64_t j, int64_t k) { return w[static_cast<size_t>((i * b + j) * taps + k)]; };
    if (name.ends_with("dwconv.conv.weight")) {
      Expected& out = plains[name] = {{taps, a}, {}};
      for (int64_t j = 0; j < taps; ++j) {
        for (int64_t c = 0; c < a; ++c) out.values.push_back(at(c, 0, j));
      }
      return;
    }
    const int64_t stride = stride_of(name);
    if (stride == 0) {  // y[t] = sum over taps j and channels c of W[o][c][j] x[t - taps + 1 + j][c]
      Expected& out = matrices[module_of(name)] = {{a, taps * b}, {}};
      for (int64_t o = 0; o < a; ++o) {
        for (int64_t j = 0; j < taps; ++j) {
          for (int64_t c = 0; c < b; ++c) out.values.push_back(at(o, c, j));
        }
      }
      return;
    }
    // y[t * stride + r] = sum over q of W[:, :, r + stride * q] x[t - q]; the oldest input first.
    Expected& out = matrices[module_of(name)] = {{stride * b, taps / stride * a}, {}};
    for (int64_t r = 0; r < stride; ++r) {
      for (int64_t o = 0; o < b; ++o) {
        for (int64_t q = taps / stride - 1; q >= 0; --q) {
          for (int64_t c = 0; c < a; ++c) out.values.push_back(at(c, o, r + stride * q));
        }
      }
    }
  }

  void add_codebook(const std::string& prefix, const std::string& book, const std::string& sum, const TensorView& first) {
    const bool one = prefix.find("rvq_first") != prefix.npos || prefix.find("semantic") != prefix.npos;
    static const std::regex kLayers(R"((\.vq)?\.layers$)");
    Expected& out = plains[std::regex_replace(prefix, kLayers, "") + ".codebook"];
    out.shape = {one ? 1 : 15, first.shape()[0], first.shape()[1]};
    for (int64_t level = 0; level < out.shape[0]; ++level) {
      const std::string stem = prefix + "." + std::to_string(level) + "." + book + ".";
      const std::vector<float> sums = values_of(source_.at(stem + sum)), usage = values_of(source_.at(stem + "cluster_usage"));
      for (size_t i = 0; i < sums.size(); ++i) {
        const float used = usage[i / static_cast<size_t>(first.shape()[1])];
        out.values.push_back(sums[i] / (used < 1e-5F ? 1e-5F : used));
      }
    }
  }

  const Checkpoint& source_;
};

// A golden checkpoint that may be changed before it is written.
class EditedSource {
 public:
  explicit EditedSource(const std::string& name = "base-tiny-bf16") : EditedSource(source_path(name)) {}
  explicit EditedSource(const std::filesystem::path& path)
      : config(read_json_object(path / "config.json")), speech(read_json_object(path / kSpeechTokenizer / "config.json")) {
    const Checkpoint source = Checkpoint::open(path);
    for (const auto& [tensor, view] : source.tensors()) {
      (is_codec(tensor) ? codec : model).add(tensor, *view.tensor);
    }
    for (const char* file : {"vocab.json", "merges.txt", "tokenizer_config.json", "generation_config.json"}) {
      side_files_[file] = path / file;
    }
  }

  static bool is_codec(const std::string& tensor) { return tensor.starts_with("decoder.") || tensor.starts_with("encoder."); }

  void write(const std::filesystem::path& directory) const {
    std::filesystem::create_directories(directory / kSpeechTokenizer);
    std::ofstream(directory / "config.json") << config;
    std::ofstream(directory / kSpeechTokenizer / "config.json") << speech;
    model.write(directory / "model.safetensors");
    codec.write(directory / kSpeechTokenizer / "model.safetensors");
    for (const auto& [name, from] : side_files_) std::filesystem::copy_file(from, directory / name);
  }

  nlohmann::json config, speech;
  omni_files::SafetensorsWriter model, codec;

 private:
  std::map<std::string, std::filesystem::path> side_files_;
};

inline std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace ref::tts::test
