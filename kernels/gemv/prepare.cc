// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/prepare.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/format/bf16.h"

namespace okl {
namespace {

constexpr uint16_t scrub(uint16_t x) { return (x & 0x7FFF) < kScrubBelow ? 0 : x; }

void copy_inputs(const uint16_t* x, int64_t count, bool scrubbed, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = scrubbed ? scrub(x[i]) : x[i];
}

void widen_inputs(const uint16_t* x, int64_t count, bool scrubbed, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(scrubbed ? scrub(x[i]) : x[i]);
}

float input_of(XForm form, const uint8_t* part, int64_t k) {
  if (form == XForm::kPairs) return bf16_to_float(reinterpret_cast<const uint16_t*>(part)[k]);
  return reinterpret_cast<const float*>(part)[k];
}

void add_slices(XForm form, const uint8_t* const* parts, int64_t slices, float* sums) {
  for (int64_t k = 0; k < slices * kSumSlice; k += 2) {
    for (int i = 0; i < kSumChains; ++i) {
      sums[i] = sums[i] + input_of(form, parts[i], k + 1);
      sums[i] = sums[i] + input_of(form, parts[i], k);
    }
  }
}

// The rows of one tile.
class TileWriter {
 public:
  TileWriter(const PrepareArgs& args, uint32_t tile)
      : args_(args),
        config_(*args.config),
        layout_(config_, args.form, args.chunk),
        first_(args.tiles.first(tile)),
        rows_(args.tiles.rows(tile)) {}

  void write() const {
    for (uint32_t row = first_; row < first_ + rows_; ++row) {
      for (int64_t k = 0; k < config_.padded_k(); k += layout_.chunk) {
        const int64_t inputs = std::min(layout_.chunk, config_.k - k);  // of those that exist
        if (inputs > 0) write_inputs(row, k, inputs);
        const int64_t padding = std::min(layout_.chunk, config_.padded_k() - k) - std::max<int64_t>(inputs, 0);
        if (padding > 0) std::memset(part(row, k + inputs), 0, static_cast<size_t>(padding) * layout_.element_bytes);
      }
    }
    if (config_.numerics != Numerics::kGroup) return;
    const int64_t last = config_.groups() - 1;
    write_sums(0, last);
    write_sums(last, last + 1);  // the last group may be shorter than the others
  }

 private:
  uint8_t* part(uint32_t row, int64_t k) const {
    return args_.workspace + layout_.x(args_.m, k / layout_.chunk, row) +
           static_cast<size_t>(k % layout_.chunk) * layout_.element_bytes;
  }

  void write_inputs(uint32_t row, int64_t k, int64_t inputs) const {
    uint8_t* const out = part(row, k);
    const int64_t offset = static_cast<int64_t>(row) * args_.ldx;
    if (args_.x_type == OMNI_DTYPE_F32) {
      const float* const x = static_cast<const float*>(args_.x) + offset;
      auto* const floats = reinterpret_cast<float*>(out);
      if (args_.permutation == nullptr) {
        std::memcpy(floats, x + k, static_cast<size_t>(inputs) * sizeof(float));
      } else {
        for (int64_t i = 0; i < inputs; ++i) floats[i] = x[args_.permutation[k + i]];
      }
      return;
    }
    const uint16_t* const x = static_cast<const uint16_t*>(args_.x) + offset;
    if (args_.permutation == nullptr) {
      write_words(x + k, inputs, out);
      return;
    }
    std::array<uint16_t, 256> gathered;
    for (int64_t first = 0; first < inputs;) {
      const int64_t count = std::min<int64_t>(inputs - first, gathered.size());
      for (int64_t i = 0; i < count; ++i) gathered[static_cast<size_t>(i)] = x[args_.permutation[k + first + i]];
      write_words(gathered.data(), count, out + static_cast<size_t>(first) * layout_.element_bytes);
      first += count;
    }
  }
  void write_words(const uint16_t* x, int64_t count, uint8_t* out) const {
    const bool scrubbed = config_.numerics == Numerics::kGroup;
    if (args_.form == XForm::kPairs) {
      args_.kernel->copy(x, count, scrubbed, reinterpret_cast<uint16_t*>(out));
    } else {
      args_.kernel->widen(x, count, scrubbed, reinterpret_cast<float*>(out));
    }
  }

  // X of groups [first_group, last_group) of all rows; they have equal lengths, and cross chunks at the same places if at all.
  void write_sums(int64_t first_group, int64_t last_group) const {
    const int64_t groups = last_group - first_group, chains = groups * rows_;
    if (chains == 0) return;
    const int64_t inputs = config_.padded_inputs_in_group(first_group);
    auto* const out = reinterpret_cast<float*>(args_.workspace + layout_.sums(args_.m, first_));
    for (int64_t chain = 0; chain < chains; chain += kSumChains) {
      const int count = static_cast<int>(std::min<int64_t>(kSumChains, chains - chain));
      uint32_t row[kSumChains];
      int64_t group[kSumChains];
      for (int i = 0; i < kSumChains; ++i) {
        const int64_t index = chain + (i < count ? i : 0);  // spare lanes repeat the first chain
        row[i] = static_cast<uint32_t>(index / groups);
        group[i] = first_group + index % groups;
      }
      float sums[kSumChains] = {};
      for (int64_t done = 0; done < inputs;) {
        const uint8_t* parts[kSumChains];
        for (int i = 0; i < kSumChains; ++i) parts[i] = part(first_ + row[i], group[i] * config_.group + done);
        const int64_t together = std::min(inputs - done, layout_.chunk - (group[0] * config_.group + done) % layout_.chunk);
        args_.kernel->add(args_.form, parts, together / kSumSlice, sums);
        done += together;
      }
      for (int i = 0; i < count; ++i) out[group[i] * rows_ + row[i]] = sums[i];
    }
  }

  const PrepareArgs& args_;
  const LinearConfig& config_;
  const WorkspaceLayout layout_;
  const uint32_t first_, rows_;
};

}  // namespace

const PrepareKernel prepare_portable = {&widen_inputs, &copy_inputs, &add_slices};

void prepare_rows(const PrepareArgs& args, uint32_t first_tile, uint32_t last_tile) {
  for (uint32_t tile = first_tile; tile < last_tile; ++tile) TileWriter(args, tile).write();
}

}  // namespace okl
