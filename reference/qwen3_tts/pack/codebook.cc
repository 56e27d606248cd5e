// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/pack/codebook.h"

#include <algorithm>
#include <cmath>

#include "reference/core/error.h"
#include "reference/io/int4_words.h"
#include "reference/io/pages.h"

namespace ref::tts {
namespace {

constexpr float kLeastUsage = 1e-5F;  // of an entry that was never used

struct Level {
  const TensorView* sums;
  const TensorView* usage;
};

// Elements `first` and on of entries [level][entry][width].
void divide(const std::vector<Level>& levels, int64_t size, int64_t width, uint64_t first, std::span<float> out) {
  const auto per_level = static_cast<uint64_t>(size * width);
  for (size_t i = 0; i < out.size();) {
    const uint64_t at = first + i, in_level = at % per_level;
    const Level& level = levels[at / per_level];
    const auto entry = static_cast<int64_t>(in_level / static_cast<uint64_t>(width));
    const float usage = std::max(load_float(*level.usage, entry), kLeastUsage);
    const size_t end = std::min(out.size(), i + static_cast<size_t>(width) - in_level % static_cast<size_t>(width));
    for (auto element = static_cast<int64_t>(in_level); i < end; ++i, ++element) {
      out[i] = load_float(*level.sums, element) / usage;
      if (std::isfinite(out[i])) continue;
      throw Error(level.sums->where() + " entry " + std::to_string(entry) + " divided by its usage is not finite");
    }
    if (in_level + static_cast<uint64_t>(width) >= per_level) release_pages(level.sums->bytes());
  }
}

const TensorView* find(const Checkpoint& checkpoint, const std::string& tensor, const std::vector<int64_t>& shape, TensorUse* use) {
  const TensorView& view = checkpoint.at(tensor, shape);
  plain_type(view);  // floating point, or an error
  use->add_tensor(tensor);
  return &view;
}

}  // namespace

PlainPlan plan_codebook(const Checkpoint& checkpoint, const PartPlain& codebook, TensorUse* use) {
  const int64_t size = codebook.shape[1], width = codebook.shape[2];
  std::vector<Level> levels;
  for (int64_t i = 0; i < codebook.shape[0]; ++i) {
    const std::string level = codebook.prefix + std::to_string(i);
    levels.push_back(
        {find(checkpoint, level + codebook.sum, {size, width}, use), find(checkpoint, level + codebook.usage, {size}, use)});
  }
  PlainPlan plan{.name = codebook.name, .type = OMNI_DTYPE_F32, .shape = codebook.shape};
  plan.derive = [levels, size, width](uint64_t first, std::span<float> out) { divide(levels, size, width, first, out); };
  return plan;
}

PlainPlan plan_depthwise(const Checkpoint& checkpoint, const PartPlain& depthwise, TensorUse* use) {
  const int64_t taps = depthwise.shape[0], channels = depthwise.shape[1];
  const TensorView* view = find(checkpoint, depthwise.name, {channels, 1, taps}, use);
  PlainPlan plan{.name = depthwise.name, .type = OMNI_DTYPE_F32, .shape = depthwise.shape};
  plan.derive = [view, taps, channels](uint64_t first, std::span<float> out) {
    for (size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<int64_t>(first + i);
      out[i] = load_float(*view, at % channels * taps + at / channels);
    }
  };
  return plan;
}

}  // namespace ref::tts
