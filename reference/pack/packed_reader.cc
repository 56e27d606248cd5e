// SPDX-License-Identifier: Apache-2.0
// Opens packed directories: mapped, or copied into large pages.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "reference/core/error.h"
#include "reference/core/parallel.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/image.h"
#include "reference/pack/memory_sink.h"
#include "reference/pack/models.h"
#include "reference/pack/packed_file.h"
#include "reference/pack/packer.h"
#include "reference/pack/sha256.h"
#include "reference/pack/source_scan.h"

namespace ref {
namespace {

namespace fs = std::filesystem;
using omni_files::SafetensorsFile;

constexpr size_t kReadBytes = size_t{8} << 20;  // of one task: large enough for a system call, small enough for two threads

// Maps it and checks that it is a packed model.
std::shared_ptr<const SafetensorsFile> open_packed(const fs::path& directory) {
  const fs::path path = directory / kWeightsFile;
  try {
    auto file = std::make_shared<const SafetensorsFile>(SafetensorsFile::open(path.string()));
    check_format(path.string(), file->metadata());
    return file;
  } catch (const omni_files::FileError& error) {
    throw Error(error.what());
  }
}

std::map<std::string, StoredBytes> tensors_of(const SafetensorsFile& file) {
  std::map<std::string, StoredBytes> tensors;
  for (const auto& [name, tensor] : file.tensors()) tensors.emplace(name, StoredBytes{tensor.dtype, tensor.shape, tensor.bytes});
  return tensors;
}

// Tables and parts of seldom use stay mapped, and nobody reads what stands between tensors.
bool stays_mapped(const Metadata& metadata, const std::string& tensor) {
  return tensor.starts_with(kPadPrefix) || metadata.contains("lookup." + tensor) || metadata.contains("seldom." + tensor);
}

// The data section as far as it is read for every token.
Bytes resident_part(const std::map<std::string, StoredBytes>& tensors, const Metadata& metadata) {
  const std::byte *begin = nullptr, *end = nullptr;
  for (const auto& [name, tensor] : tensors) {
    const Bytes bytes = tensor.bytes;
    if (bytes.empty()) continue;
    if (begin == nullptr || bytes.data() < begin) begin = bytes.data();
    if (!stays_mapped(metadata, name) && (end == nullptr || bytes.data() + bytes.size() > end)) end = bytes.data() + bytes.size();
  }
  return begin == nullptr || end == nullptr ? Bytes() : Bytes(begin, end);
}

class OpenFile {
 public:
  explicit OpenFile(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw Error(path + ": cannot be opened (" + std::strerror(errno) + ")");
  }
  ~OpenFile() { ::close(descriptor_); }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  uint64_t size() const {
    struct stat status {};
    return ::fstat(descriptor_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
  }
  // 0, or the error: EIO when the file ends early.
  int read(std::span<std::byte> out, uint64_t offset) const {
    while (!out.empty()) {
      const ssize_t got = ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return got < 0 ? errno : EIO;
      offset += static_cast<uint64_t>(got);
      out = out.subspan(static_cast<size_t>(got));
    }
    return 0;
  }

 private:
  const std::string& path_;
  int descriptor_;
};

// Copies the resident part into one block. It is read and not copied from the mapping, whose pages would count a second time.
std::shared_ptr<omni::PackedMemory> copy_resident(const SafetensorsFile& file, Bytes resident, uint64_t data_bytes,
                                                  const omni_parallel* parallel) {
  const OpenFile open(file.name());
  if (open.size() < data_bytes) throw Error(file.name() + ": became shorter while it was read");
  const uint64_t data = open.size() - data_bytes;
  auto memory = allocate_weights(resident.size(), file.name());
  std::atomic<int> failure{0};
  const auto pieces = static_cast<int64_t>((resident.size() + kReadBytes - 1) / kReadBytes);
  parallel_for(parallel, pieces, [&](int64_t piece) {
    const size_t at = static_cast<size_t>(piece) * kReadBytes;
    const int error = open.read(memory->bytes().subspan(at, std::min(kReadBytes, resident.size() - at)), data + at);
    if (error != 0) failure = error;
  });
  if (failure != 0) throw Error(file.name() + ": cannot be read (" + std::strerror(failure) + ")");
  return memory;
}

}  // namespace

bool is_packed(const fs::path& directory) {
  std::error_code ignored;
  return fs::exists(directory / kWeightsFile, ignored);
}

std::shared_ptr<const ModelWeights> load_packed(const fs::path& directory, WeightsMemory memory, const omni_parallel* parallel) {
  const std::shared_ptr<const SafetensorsFile> file = open_packed(directory);
  std::map<std::string, StoredBytes> tensors = tensors_of(*file);
  const Bytes resident = resident_part(tensors, file->metadata());
  std::vector<std::shared_ptr<const void>> storage = {file};
  // Everything is checked on the mapping before memory of its size is asked for.
  auto weights = assemble(file->name(), tensors, file->metadata());
  weights->name = directory.string();
  weights->config = read_json_object(directory / "config.json");
  check_model(*weights);
  if (memory == WeightsMemory::kMapped) {
    request_pages(resident);
  } else {
    uint64_t data_bytes = 0;
    for (const auto& [name, tensor] : tensors) data_bytes += tensor.bytes.size();
    const auto block = copy_resident(*file, resident, data_bytes, parallel);
    for (auto& [name, tensor] : tensors) {
      if (stays_mapped(file->metadata(), name) || tensor.bytes.empty()) continue;
      tensor.bytes = Bytes(block->bytes()).subspan(static_cast<size_t>(tensor.bytes.data() - resident.data()), tensor.bytes.size());
    }
    auto copied = assemble(file->name(), tensors, file->metadata());
    copied->name = weights->name;
    copied->config = std::move(weights->config);
    weights = std::move(copied);
    storage.push_back(block);
  }
  weights->storage = std::move(storage);
  return weights;
}

void verify_packed(const fs::path& directory, const Progress& progress, const omni_parallel* parallel) {
  const std::shared_ptr<const SafetensorsFile> file = open_packed(directory);
  struct Item {
    const std::string* name;
    Bytes bytes;
    bool right = false;
  };
  std::vector<Item> items;
  uint64_t total = 0;
  for (const auto& [name, tensor] : file->tensors()) {
    if (!file->metadata().contains("sha256." + name)) {
      throw Error(file->name() + ": has no digest of the tensor \"" + name + "\"");
    }
    items.push_back({&name, tensor.bytes});
    total += tensor.bytes.size();
  }
  std::mutex mutex;
  uint64_t done = 0;
  std::exception_ptr interrupted;
  parallel_for(parallel, static_cast<int64_t>(items.size()), [&](int64_t index) {
    Item& item = items[static_cast<size_t>(index)];
    Sha256 digest;
    for (size_t at = 0; at < item.bytes.size(); at += kReadBytes) {
      const Bytes piece = item.bytes.subspan(at, std::min(kReadBytes, item.bytes.size() - at));
      digest.add(piece);
      release_pages(piece);
      const std::lock_guard lock(mutex);
      done += piece.size();
      if (interrupted || !progress) continue;
      try {
        progress(*item.name, done, total);
      } catch (...) {
        interrupted = std::current_exception();  // none may leave a task
      }
    }
    item.right = digest.finish() == file->metadata().at("sha256." + *item.name);
  });
  if (interrupted) std::rethrow_exception(interrupted);
  for (const Item& item : items) {
    if (!item.right) throw Error(file->name() + ": tensor \"" + *item.name + "\" differs from its SHA-256");
  }
}

}  // namespace ref
