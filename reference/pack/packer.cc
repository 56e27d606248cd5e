// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/packer.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/pack/directory_sink.h"
#include "reference/pack/image.h"
#include "reference/pack/matrix_packer.h"
#include "reference/pack/memory_sink.h"
#include "reference/pack/models.h"
#include "reference/pack/packed_file.h"
#include "reference/pack/synthetic_models.h"
#include "tools/common/mapped_file.h"

namespace ref {
namespace {

namespace fs = std::filesystem;

// What goes along, where the source has it.
constexpr const char* kSideFiles[] = {
    "config.json", "generation_config.json", "tokenizer.json",         "tokenizer_config.json", "vocab.json",
    "merges.txt",  "chat_template.jinja",    "special_tokens_map.json"};
constexpr uint64_t kMostSideBytes = uint64_t{256} << 20;

std::vector<std::string> directory_names(const PackPlan& plan) {
  std::vector<std::string> names(std::begin(kSideFiles), std::end(kSideFiles));
  names.push_back(plan.file);
  return names;
}

// Writes every tensor of the image.
std::vector<TensorReport> pack_into(const PackPlan& plan, const Image& image, Sink& sink, const PackOptions& options,
                                    const Progress& progress, const omni_parallel* parallel) {
  uint64_t done = 0;
  PackTarget target{image, sink, options, parallel, [&](const std::string& tensor, uint64_t bytes) {
                      done += bytes;
                      if (progress) progress(tensor, done, image.bytes);
                    }};
  std::vector<TensorReport> reports;
  for (const MatrixPlan& matrix : plan.matrices) reports.push_back(pack_matrix(matrix, target));
  for (const PlainPlan& plain : plan.plains) reports.push_back(pack_plain(plain, target));
  pack_padding(target);
  return reports;
}

PackPlan plan_checkpoint(const Checkpoint& source, const nlohmann::json& config, const PackOptions& options) {
  if (options.quantiser == Quantiser::kGptq && options.calibration == nullptr) {
    throw Error("the quantiser gptq needs the statistics of a text (--calibrate)");
  }
  return plan_model(source, config, options);
}

void write_side_file(StagedDirectory& staged, const std::string& name, std::span<const std::byte> bytes) {
  const int descriptor = staged.create(name);
  try {
    write_at(descriptor, bytes, 0, staged.display_path(name));
    if (::fsync(descriptor) != 0) throw OutputError(staged.display_path(name) + ": cannot be synced");
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
}

// The config of a model in several directories becomes one file; any other is copied as it is.
void copy_side_files(const fs::path& source, const nlohmann::json& config, StagedDirectory& staged) {
  std::error_code ignored;
  for (const char* name : kSideFiles) {
    const fs::path path = source / name;
    if (!fs::exists(path, ignored)) continue;
    if (name == std::string_view("config.json") && fs::exists(source / kSpeechTokenizer, ignored)) {
      const std::string text = config.dump(2) + "\n";
      write_side_file(staged, name, std::as_bytes(std::span(text)));
      continue;
    }
    try {
      const omni_files::MappedFile file = omni_files::MappedFile::open(path.string());
      if (file.bytes().size() > kMostSideBytes) throw Error(path.string() + ": is larger than any such file");
      write_side_file(staged, name, file.bytes());
    } catch (const omni_files::FileError& error) {
      throw Error(error.what());
    }
  }
}

// A file that is read must never be one that is written.
void check_apart(const fs::path& source, const fs::path& destination) {
  std::error_code ignored;
  const fs::path from = fs::weakly_canonical(source, ignored), to = fs::weakly_canonical(destination, ignored);
  const auto inside = [](const fs::path& inner, const fs::path& outer) {
    return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
  };
  if (to == from) throw OutputError(destination.string() + ": is the source itself");
  if (inside(to, from)) throw OutputError(destination.string() + ": lies inside of the source " + source.string());
  if (inside(from, to)) throw OutputError(destination.string() + ": holds the source " + source.string());
}

void check_replaced(const fs::path& destination) {
  std::error_code ignored;
  if (!fs::exists(destination, ignored)) return;
  if (!is_packed(destination)) throw OutputError(destination.string() + ": is not replaced, as it is no packed model");
}

std::vector<TensorReport> write_weights(const PackPlan& plan, StagedDirectory& staged, const PackOptions& options,
                                        const Progress& progress, const omni_parallel* parallel) {
  const Image image = make_image(plan);
  DirectorySink sink(image, staged, plan.file);
  std::vector<TensorReport> reports = pack_into(plan, image, sink, options, progress, parallel);
  sink.finish();
  return reports;
}

std::shared_ptr<ModelWeights> pack_into_memory(const PackPlan& plan, const std::string& name, const PackOptions& options,
                                               std::vector<TensorReport>* reports, const Progress& progress,
                                               const omni_parallel* parallel) {
  const Image image = make_image(plan);
  MemorySink sink(image, name);
  *reports = pack_into(plan, image, sink, options, progress, parallel);
  std::map<std::string, StoredBytes> tensors;
  for (const StoredTensor& tensor : image.tensors) {
    const Bytes bytes = Bytes(sink.memory()->bytes()).subspan(tensor.offset, tensor.bytes);
    tensors.emplace(tensor.name, StoredBytes{tensor.dtype, tensor.shape, bytes});
  }
  std::shared_ptr<ModelWeights> weights = assemble(name, tensors, image.metadata);
  weights->name = name;
  weights->storage = {sink.memory()};
  return weights;
}

}  // namespace

std::shared_ptr<const ModelWeights> pack_in_memory(const Checkpoint& source, const PackOptions& options, PackResult* result,
                                                   const Progress& progress, const omni_parallel* parallel) {
  nlohmann::json config = read_model_config(source.directory());
  const PackPlan plan = plan_checkpoint(source, config, options);
  std::vector<TensorReport> reports;
  const std::shared_ptr<ModelWeights> weights =
      pack_into_memory(plan, source.directory().string(), options, &reports, progress, parallel);
  weights->config = std::move(config);
  if (result != nullptr) *result = {std::move(reports), plan.notes};
  return weights;
}

std::shared_ptr<const ModelWeights> pack_plan_in_memory(const PackPlan& plan, const std::string& name,
                                                        const omni_parallel* parallel) {
  std::vector<TensorReport> reports;
  return pack_into_memory(plan, name, {}, &reports, {}, parallel);
}

PackResult pack_to_directory(const Checkpoint& source, const fs::path& destination, const PackOptions& options, bool replace,
                             const Progress& progress, const omni_parallel* parallel) {
  check_apart(source.directory(), destination);
  if (replace) check_replaced(destination);
  const nlohmann::json config = read_model_config(source.directory());
  const PackPlan plan = plan_checkpoint(source, config, options);
  StagedDirectory staged(destination, directory_names(plan), replace);
  copy_side_files(source.directory(), config, staged);
  std::vector<TensorReport> reports = write_weights(plan, staged, options, progress, parallel);
  staged.commit();
  return {std::move(reports), plan.notes};
}

PackResult write_synthetic(const SyntheticModel& model, const fs::path& destination, const PackOptions& options, bool replace,
                           const Progress& progress, const omni_parallel* parallel) {
  if (replace) check_replaced(destination);
  std::vector<std::string> names = directory_names(model.plans.front());
  for (const PackPlan& plan : model.plans) names.push_back(plan.file);
  for (const auto& [name, text] : model.files) names.push_back(name);
  StagedDirectory staged(destination, names, replace);
  for (const auto& [name, text] : model.files) write_side_file(staged, name, std::as_bytes(std::span(text)));
  PackResult result;
  for (const PackPlan& plan : model.plans) {
    const std::vector<TensorReport> reports = write_weights(plan, staged, options, progress, parallel);
    result.tensors.insert(result.tensors.end(), reports.begin(), reports.end());
    result.notes.insert(result.notes.end(), plan.notes.begin(), plan.notes.end());
  }
  staged.commit();
  return result;
}

}  // namespace ref
