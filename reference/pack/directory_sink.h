// SPDX-License-Identifier: Apache-2.0
// Packs into a file of a staged directory: one piece in memory at a time, digests on the way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "reference/pack/image.h"
#include "reference/pack/sha256.h"
#include "reference/pack/sink.h"
#include "reference/pack/staged_directory.h"

namespace ref {

class DirectorySink : public Sink {
 public:
  // Reserves the room of the whole file, so that a full disk shows before the work is done. Throws OutputError.
  DirectorySink(const Image& image, StagedDirectory& directory, const std::string& file);
  ~DirectorySink() override;
  DirectorySink(const DirectorySink&) = delete;
  DirectorySink& operator=(const DirectorySink&) = delete;

  std::span<std::byte> acquire(size_t tensor, uint64_t offset, size_t bytes) override;
  void commit() override;
  // Writes the header with the digests and syncs. Every tensor must be complete.
  void finish();

 private:
  const Image& image_;
  std::string path_;
  int descriptor_;
  uint64_t data_;  // where the data section begins
  std::unique_ptr<std::byte[], void (*)(void*)> buffer_;
  size_t capacity_ = 0;
  std::span<std::byte> piece_;
  size_t tensor_ = 0;
  uint64_t offset_ = 0;
  Sha256 digest_;
  std::vector<std::string> digests_;
};

}  // namespace ref
