// SPDX-License-Identifier: Apache-2.0
// The command line of omni-pack.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "reference/pack/options.h"
#include "tools/common/cli_names.h"

namespace pack {

struct Options {
  std::vector<std::string> paths;                // SRC DST, or DST of a synthetic model
  std::string predictor, predictor_head, codec;  // of a speech model
  bool no_encoders = false;                      // likewise
  std::string weights, head, quantiser = "search", scales = "auto";
  std::optional<int64_t> group;
  bool symmetric = false, strict = false, force = false, quiet = false;
  std::vector<std::string> keep;
  std::string calibrate;
  int64_t calibrate_windows = 64;
  std::string report;  // "-": the table only
  std::string verify;
  std::string synthetic, synthetic_source;
  uint32_t threads = 0;
};

void add_options(CLI::App& app, Options& options);

// The library's options for a speech model, or for one of text; `weights_reason` says why these weights when none were asked for.
// Throws Error naming an option that the model has no use for.
ref::PackOptions pack_options(const Options& options, bool speech, std::string* weights_reason);

// SRC, DST, --verify and --synthetic fit together; the line of an error, or "".
std::string check_paths(const Options& options);

}  // namespace pack
