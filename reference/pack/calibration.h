// SPDX-License-Identifier: Apache-2.0
// What the linear layers of a model see while it reads a text, asked for module by module while the model is packed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/pack/input_moments.h"

namespace ref {

class Calibration {
 public:
  virtual ~Calibration() = default;
  // Moments of a linear module's inputs, finished, and with their factor where that was asked for. Modules come in the order of the
  // model, layer by layer and the head last, as the statistics of one layer are held at a time: they live until another layer's
  // are asked for. Throws Error for a module that is unknown, or of a layer that has passed.
  virtual const InputMoments& inputs(const std::string& module) = 0;
};

struct CalibrationOptions {
  int64_t window = 512;       // tokens that a model reads from an empty cache
  int64_t most_windows = 64;  // spread evenly over a text that has more
  bool factors = false;       // for GPTQ: moments of each two inputs, k^2 floats
  const omni_parallel* parallel = nullptr;
  std::function<void(const std::string& what)> tick = {};  // called now and then; what it throws ends the packing
};

// Ids of a text, without any token that is not of it. Throws Error naming the file: absent, larger than kMostTextBytes, without
// ids; no tokenizer.json in `model`.
std::vector<int32_t> read_text_ids(const std::filesystem::path& text, const std::filesystem::path& model);
inline constexpr uint64_t kMostTextBytes = uint64_t{16} << 20;

// Consecutive windows of the ids, the last one perhaps shorter; `most` of them at most, evenly spread.
std::vector<std::vector<int32_t>> cut_windows(const std::vector<int32_t>& ids, int64_t window, int64_t most);

}  // namespace ref
