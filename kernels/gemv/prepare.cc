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

void move_and_add(XForm form, const uint16_t* const* x, uint8_t* const* parts, int64_t slices, float* sums) {
  for (int i = 0; i < kSumChains; ++i) {
    if (form == XForm::kPairs) {
      copy_inputs(x[i], slices * kSumSlice, true, reinterpret_cast<uint16_t*>(parts[i]));
    } else {
      widen_inputs(x[i], slices * kSumSlice, true, reinterpret_cast<float*>(parts[i]));
    }
  }
  add_slices(form, parts, slices, sums);
}

// The rows of one tile.
class TileWriter {
 public:
  TileWriter(const PrepareArgs& args, uint32_t tile)
      : args_(args),
        config_(*args.config),
        layout_(config_, args.form, args.chunk),
        groups_(config_.groups()),
        padded_k_(config_.padded_k()),
        first_(args.tiles.first(tile)),
        rows_(args.tiles.rows(tile)) {}

  void write() const {
    if (config_.numerics != Numerics::kGroup) {
      write_rows(0);
      return;
    }
    // The last group may be shorter than the others and end in padding: then it goes by itself.
    const bool ragged = config_.k % config_.group != 0 || config_.k != padded_k_;
    const int64_t last = ragged ? groups_ - 1 : groups_;
    const bool together = args_.x_type == OMNI_DTYPE_BF16 && args_.permutation == nullptr;
    if (together) {
      write_sums(0, last, true);
      write_rows(last * config_.group);
    } else {
      write_rows(0);
      write_sums(0, last, false);
    }
    if (ragged) write_sums(last, last + 1, false);
  }

 private:
  uint8_t* part(uint32_t row, int64_t k) const {
    const int64_t index = k >> layout_.chunk_shift;
    return args_.workspace + layout_.x(args_.m, index, row) +
           static_cast<size_t>(k - index * layout_.chunk) * layout_.element_bytes;
  }

  // Inputs from `begin`, the first of a group, to the end.
  void write_rows(int64_t begin) const {
    for (uint32_t row = first_; row < first_ + rows_; ++row) {
      for (int64_t k = begin; k < padded_k_;) {
        const int64_t end = k + layout_.within_chunk(k, padded_k_ - k), real_end = std::clamp(config_.k, k, end);
        if (real_end > k) write_inputs(row, k, real_end - k);
        if (end > real_end) std::memset(part(row, real_end), 0, static_cast<size_t>(end - real_end) * layout_.element_bytes);
        k = end;
      }
    }
  }

  void write_inputs(uint32_t row, int64_t k, int64_t inputs) const {
    uint8_t* const out = part(row, k);
    const int64_t offset = row * args_.ldx;
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

  // X of groups [first_group, last_group) of all rows; they have equal lengths, and cross chunks at the same places if at all. With
  // `move` the inputs are written on the way.
  void write_sums(int64_t first_group, int64_t last_group, bool move) const {
    const int64_t chains = (last_group - first_group) * rows_;
    if (chains == 0) return;
    const int64_t inputs = config_.padded_inputs_in_group(first_group);
    float* const out = reinterpret_cast<float*>(args_.workspace + layout_.sums(args_.m, first_)) + first_group * rows_;
    // Rows first: chunk by chunk the same group of 16 rows lies in different sets of L1, 16 groups of one row often do not.
    uint32_t next_row = 0;
    int64_t next_group = first_group;
    for (int64_t chain = 0; chain < chains; chain += kSumChains) {
      const int count = static_cast<int>(std::min<int64_t>(kSumChains, chains - chain));
      uint32_t row[kSumChains];
      int64_t begin[kSumChains];
      for (int i = 0; i < kSumChains; ++i) {
        row[i] = i < count ? next_row : row[0];  // spare lanes repeat the first chain
        begin[i] = i < count ? next_group * config_.group : begin[0];
        if (++next_row == rows_) {
          next_row = 0;
          ++next_group;
        }
      }
      float sums[kSumChains] = {};
      for (int64_t done = 0; done < inputs;) {
        const int64_t together = layout_.within_chunk(begin[0] + done, inputs - done);
        uint8_t* parts[kSumChains];
        for (int i = 0; i < kSumChains; ++i) parts[i] = part(first_ + row[i], begin[i] + done);
        if (move) {
          const uint16_t* x[kSumChains];
          for (int i = 0; i < kSumChains; ++i) {
            x[i] = static_cast<const uint16_t*>(args_.x) + (first_ + row[i]) * args_.ldx + begin[i] + done;
          }
          args_.kernel->move_and_add(args_.form, x, parts, together / kSumSlice, sums);
        } else {
          args_.kernel->add(args_.form, parts, together / kSumSlice, sums);
        }
        done += together;
      }
      std::memcpy(out + chain, sums, static_cast<size_t>(count) * sizeof(float));
    }
  }

  const PrepareArgs& args_;
  const LinearConfig& config_;
  const WorkspaceLayout layout_;
  const int64_t groups_, padded_k_;
  const uint32_t first_, rows_;
};

}  // namespace

const PrepareKernel prepare_portable = {&widen_inputs, &copy_inputs, &add_slices, &move_and_add};

void prepare_rows(const PrepareArgs& args, uint32_t first_tile, uint32_t last_tile) {
  for (uint32_t tile = first_tile; tile < last_tile; ++tile) TileWriter(args, tile).write();
}

}  // namespace okl
