// SPDX-License-Identifier: Apache-2.0
// Where a writer's samples go.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "reference/audio/writer.h"

namespace ref::audio {

class Sink {
 public:
  virtual ~Sink() = default;
  // Samples within [-1, 1]. False when nobody reads any more. Throws OutputError.
  virtual bool write(std::span<const float> samples) = 0;
  virtual void finish() = 0;
};

// A file of its own, by libsndfile, which appears when finish() has returned.
std::unique_ptr<Sink> file_sink(const std::filesystem::path& destination, const WriteOptions& options);
// A descriptor that bytes are pushed down as they come; closed in the end when `owned`. `name` is what error lines name.
std::unique_ptr<Sink> stream_sink(int descriptor, bool owned, const std::string& name, const WriteOptions& options);

}  // namespace ref::audio
