// SPDX-License-Identifier: Apache-2.0
// What a Qwen3-TTS model is made of, by its config alone: every matrix and every plain tensor, where they come from in a
// checkpoint, and to which part they belong. Planning, checking and making up a model all go through this one list.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/qwen3_tts/config.h"

namespace ref::tts {

enum class Part : uint8_t {
  kTalker,          // layers
  kHead,            // of codebook 0
  kText,            // embedding and projection of text, and all rows of the talker that are looked up
  kPredictor,       // layers
  kPredictorInput,  // small_to_mtp_projection
  kPredictorHead,   // of codebooks 1 to 15
  kDecoder,         // codec: codes to samples
  kEncoder,         // codec: samples to codes
  kSpeaker          // samples to a speaker row
};

// Only a reference recording goes through these.
constexpr bool is_encoder(Part part) { return part == Part::kEncoder || part == Part::kSpeaker; }

struct PartMatrix {
  enum class Form : uint8_t {
    kLinear,       // [n][k]
    kConvolution,  // [n][k / taps][taps]
    kTransposed    // [k / taps][n / stride][stride * taps]
  };
  struct Piece {
    std::string module;  // tensor "MODULE.weight"
    int64_t rows;
  };

  std::string name;
  Part part;
  int64_t n, k;
  std::vector<Piece> pieces;  // stacked by rows
  Form form = Form::kLinear;
  int64_t taps = 1, stride = 1;

  int64_t inputs() const { return k / taps; }
};

struct PartPlain {
  enum class Role : uint8_t {
    kGain,       // of a norm: about 1
    kBias,       // about 0
    kRows,       // looked up by id
    kScale,      // of a branch: small
    kSnake,      // exponents: about 0
    kDepthwise,  // [taps][channels], in the checkpoint [channels][1][taps]
    kCodebook    // [levels][size][width]: sums divided by usage
  };

  std::string name;
  Part part;
  std::vector<int64_t> shape;
  Role role;
  bool lookup = false;  // large, and only few of its rows are ever read
  // kCodebook: tensors "PREFIX0SUM", "PREFIX0USAGE" of level 0, and so on.
  std::string prefix = {}, sum = {}, usage = {};
};

struct Parts {
  std::vector<PartMatrix> matrices;
  std::vector<PartPlain> plains;
};

// Without `encoders`, nothing of which is_encoder() holds.
Parts parts_of(const Config& config, bool encoders);

// Appends to a list of parts: what the descriptions are written in.
class PartList {
 public:
  PartList(Parts* parts, Part part) : parts_(*parts), part_(part) {}

  void linear(const std::string& name, int64_t n, int64_t k, bool biased = false);
  void convolution(const std::string& name, int64_t outputs, int64_t inputs, int64_t taps, bool biased = true);
  void transposed(const std::string& name, int64_t outputs, int64_t inputs, int64_t taps, int64_t stride);
  // One matrix of several modules below `prefix`.
  void stack(const std::string& prefix, const std::string& name, int64_t k, const std::vector<PartMatrix::Piece>& pieces);
  void plain(const std::string& name, std::vector<int64_t> shape, PartPlain::Role role);
  void table(const std::string& name, std::vector<int64_t> shape, bool lookup);
  void codebook(const std::string& quantiser, const std::string& levels, const std::string& sum, const std::string& usage,
                std::vector<int64_t> shape);
  // q, k, v as one matrix, and the output.
  void attention(const std::string& prefix, const StackShape& shape);
  void swiglu(const std::string& prefix, const StackShape& shape);

 private:
  Parts& parts_;
  Part part_;
};

void add_language_parts(const Config& config, Parts* parts);
void add_decoder_parts(const CodecDecoderConfig& config, Parts* parts);
void add_encoder_parts(const CodecEncoderConfig& config, Parts* parts);
void add_speaker_parts(const SpeakerEncoderConfig& config, Parts* parts);

}  // namespace ref::tts
