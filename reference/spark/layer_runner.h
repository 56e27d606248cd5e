// SPDX-License-Identifier: Apache-2.0
// One layer at a time over the residual streams of many windows: what calibration needs, so that it never holds the statistics of
// more than a layer, and so that a layer can be quantised before the next one sees its output.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "reference/spark/decoder.h"

namespace ref::spark {

class LayerRunner {
 public:
  // `options.context` is the most tokens of a window. The weights may change between calls of load().
  LayerRunner(std::shared_ptr<const ModelWeights> weights, DecoderOptions options);
  ~LayerRunner();

  const Config& config() const;
  // stream[ids.size()][hidden]: the residual stream of a window before layer 0. Throws Error naming an id outside of the
  // vocabulary.
  void embed(std::span<const int32_t> ids, std::span<float> stream);
  // Takes the weights of layer `index` as they now are.
  void load(int64_t index);
  // Runs that layer over one window from its first token on: stream[rows][hidden] before it becomes the stream after it. The
  // observer sees the layer's tensors by the names that a decoder gives them, but for attn_proj, mlp and the stream.
  void run(std::span<float> stream, Observer* observer);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ref::spark
