// SPDX-License-Identifier: Apache-2.0
#include "reference/io/checkpoint.h"

#include <nlohmann/json.hpp>
#include <set>

#include "reference/core/error.h"
#include "reference/core/shape_text.h"
#include "tools/common/mapped_file.h"

namespace ref {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

// A file name of an index: relative, and never upwards.
void check_file_name(const fs::path& index, const std::string& name) {
  const fs::path path(name);
  bool safe = !name.empty() && path.is_relative() && name.find('\0') == name.npos;
  for (const fs::path& part : path) safe = safe && part != "..";
  if (!safe) throw Error(index.string() + ": weight_map names \"" + name + "\", which is not a file of the model directory");
}

omni_files::SafetensorsFile open_file(const fs::path& path) {
  try {
    return omni_files::SafetensorsFile::open(path.string());
  } catch (const omni_files::FileError& error) {
    throw Error(error.what());
  }
}

std::set<std::string> files_of_index(const fs::path& index) {
  const json root = read_json_object(index);
  if (!root.contains("weight_map") || !root["weight_map"].is_object()) throw Error(index.string() + ": has no weight_map");
  std::set<std::string> files;
  for (const auto& [tensor, file] : root["weight_map"].items()) {
    if (!file.is_string()) throw Error(index.string() + ": weight_map of \"" + tensor + "\" is no file name");
    check_file_name(index, file.get<std::string>());
    files.insert(file.get<std::string>());
  }
  return files;
}

}  // namespace

json read_json_object(const fs::path& file, uint64_t most_bytes) {
  try {
    const omni_files::MappedFile mapped = omni_files::MappedFile::open(file.string());
    const std::span<const std::byte> bytes = mapped.bytes();
    if (bytes.size() > most_bytes) {
      throw Error(file.string() + ": is " + std::to_string(bytes.size()) + " bytes, more than " + std::to_string(most_bytes));
    }
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    json root = json::parse(text, text + bytes.size());
    if (!root.is_object()) throw Error(file.string() + ": is no JSON object");
    return root;
  } catch (const json::exception&) {
    throw Error(file.string() + ": is no JSON");
  } catch (const omni_files::FileError& error) {
    throw Error(error.what());
  }
}

json read_model_config(const fs::path& directory) {
  json root = read_json_object(directory / "config.json");
  std::error_code ignored;
  const fs::path part = directory / kSpeechTokenizer;
  if (fs::exists(part, ignored)) root[kSpeechTokenizer] = read_json_object(part / "config.json");
  return root;
}

std::string TensorView::where() const { return file->name() + ": tensor \"" + name + "\""; }

void Checkpoint::add(omni_files::SafetensorsFile opened) {
  const std::string path = opened.name();
  const omni_files::SafetensorsFile& file = files_.emplace(path, std::move(opened)).first->second;
  for (const auto& [name, tensor] : file.tensors()) {
    const auto [place, fresh] = tensors_.emplace(name, TensorView{name, &tensor, &file});
    if (!fresh) throw Error(path + ": tensor \"" + name + "\" is also in " + place->second.file->name());
  }
}

void Checkpoint::add_directory(const fs::path& directory) {
  std::error_code ignored;
  if (const fs::path index = directory / kIndex; fs::exists(index, ignored)) {
    for (const std::string& file : files_of_index(index)) add(open_file(directory / file));
    const json map = read_json_object(index)["weight_map"];
    for (const auto& [tensor, file] : map.items()) {
      const TensorView* found = find(tensor);
      if (found == nullptr || found->file->name() != (directory / file.get<std::string>()).string()) {
        throw Error(index.string() + ": tensor \"" + tensor + "\" is not in " + file.get<std::string>());
      }
    }
    return;
  }
  if (!fs::exists(directory / kSingle, ignored)) {
    throw Error(directory.string() + ": has neither " + kSingle + " nor " + kIndex);
  }
  add(open_file(directory / kSingle));
}

Checkpoint Checkpoint::open(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) throw Error(directory.string() + ": is no directory");
  Checkpoint checkpoint;
  checkpoint.directory_ = directory;
  checkpoint.add_directory(directory);
  if (const fs::path part = directory / kSpeechTokenizer; fs::exists(part, ignored)) checkpoint.add_directory(part);
  return checkpoint;
}

const TensorView* Checkpoint::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& Checkpoint::at(const std::string& name) const {
  const TensorView* found = find(name);
  if (found == nullptr) throw Error(directory_.string() + ": has no tensor \"" + name + "\"");
  return *found;
}

const TensorView& Checkpoint::at(const std::string& name, const std::vector<int64_t>& shape) const {
  const TensorView& view = at(name);
  if (view.shape() != shape) {
    throw Error(view.where() + " has the shape " + shape_text(view.shape()) + ", expected " + shape_text(shape));
  }
  return view;
}

}  // namespace ref
