// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/calibration.h"

#include <algorithm>

#include "reference/core/error.h"
#include "reference/text/tokenizer.h"
#include "tools/common/mapped_file.h"

namespace ref {

std::vector<int32_t> read_text_ids(const std::filesystem::path& text, const std::filesystem::path& model) {
  try {
    const omni_files::MappedFile file = omni_files::MappedFile::open(text.string());
    const std::span<const std::byte> bytes = file.bytes();
    if (bytes.size() > kMostTextBytes) {
      throw Error(text.string() + ": is " + std::to_string(bytes.size()) + " bytes, more than the " +
                  std::to_string(kMostTextBytes) + " that calibration reads");
    }
    const Tokenizer tokenizer = Tokenizer::load(model / "tokenizer.json");
    std::vector<int32_t> ids = tokenizer.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (ids.empty()) throw Error(text.string() + ": has no text to calibrate with");
    return ids;
  } catch (const omni_files::FileError& error) {
    throw Error(error.what());
  }
}

std::vector<std::vector<int32_t>> cut_windows(const std::vector<int32_t>& ids, int64_t window, int64_t most) {
  const auto size = static_cast<int64_t>(ids.size()), all = (size + window - 1) / window, count = std::min(all, most);
  std::vector<std::vector<int32_t>> windows;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = i * all / count * window;
    windows.emplace_back(ids.begin() + begin, ids.begin() + std::min(size, begin + window));
  }
  return windows;
}

}  // namespace ref
