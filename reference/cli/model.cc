// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/model.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "reference/cli/console.h"
#include "reference/io/checkpoint.h"

namespace ref::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Decided by measurement: 2 MiB pages decode faster, and copying into them takes about a second for each GB.
constexpr WeightsMemory kDefaultMemory = WeightsMemory::kHuge;

void check(omni_status status, const std::string& what) {
  if (status != OMNI_OK) throw Failure(Exit::kMachine, fmt::format("{}: {}", what, omni_last_error()));
}

void use_profile(const std::string& path) {
  const std::string text = read_input("--profile", path);
  if (text.find('\0') != std::string::npos) throw Failure(Exit::kInput, fmt::format("--profile {}: holds a NUL byte", path));
  const omni_status status = omni_set_profile_json(text.c_str());
  if (status == OMNI_ERR_PROFILE) throw Failure(Exit::kInput, fmt::format("--profile {}: {}", path, omni_last_error()));
  check(status, "--profile " + path);
}

std::vector<int32_t> config_eos(const spark::Config& config) {
  std::vector<int32_t> ids;
  for (const int64_t id : config.eos) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

// "tg4 g128" of "tg4.1:n=13312,k=2048,g=128,s=bf16".
std::string layout_words(const omni_layout& layout) {
  char text[96] = {};
  if (omni_layout_to_text(&layout, text, sizeof text) != OMNI_OK) return "?";
  const std::string whole = text;
  std::string format = whole.substr(0, whole.find('.'));
  if (layout.scale_type == OMNI_DTYPE_NONE) return format;
  return fmt::format("{} g{}", format, layout.group);
}

std::string layouts_of(const ModelWeights& weights) {
  const Matrix* first = weights.find_matrix("model.layers.0.self_attn.q_k_v_proj");
  const Matrix* head = weights.find_matrix("lm_head");
  std::string text = first == nullptr ? "" : layout_words(first->layout);
  if (head != nullptr) text += ", head " + layout_words(head->layout);
  return text;
}

}  // namespace

void set_up_machine(const MachineOptions& options) {
  check(omni_initialize(), "omni_initialize");
  if (!options.profile.empty()) use_profile(options.profile);
  if (options.threads) check(omni_set_num_threads(*options.threads), fmt::format("--threads {}", *options.threads));
}

Model::Model(const std::string& path) : path_(path) {
  std::error_code unknown;
  if (!fs::is_directory(path_, unknown)) {
    const bool exists = fs::exists(path_, unknown);
    throw Failure(Exit::kModel,
                  fmt::format("{}: {}", path, exists ? "is no directory; a model is one" : "no such model directory"));
  }
  guarded(Exit::kModel, [&] {
    const std::string file = (path_ / "config.json").string();
    config_ = spark::read_config(read_json_object(file), file);
    if (fs::exists(path_ / "tokenizer.json", unknown)) {
      tokenizer_.emplace(Tokenizer::load(path_ / "tokenizer.json"));
      if (tokenizer_->size() > config_.vocabulary) {
        throw Error(fmt::format("{}: has {} tokens, more than the vocab_size {} of config.json",
                                (path_ / "tokenizer.json").string(), tokenizer_->size(), config_.vocabulary));
      }
    }
    const GenerationConfig generation = load_generation_config(path_);
    sampling_ = generation.sampling;
    sampling_.end_tokens = generation.eos.value_or(config_eos(config_));
    check_sampling(sampling_, config_.vocabulary);
  });
}

const Tokenizer& Model::need_tokenizer(const std::string& what) const {
  if (!tokenizer_) throw Failure(Exit::kModel, fmt::format("{}: has no tokenizer.json, which {} needs", path_.string(), what));
  return *tokenizer_;
}

std::vector<int32_t> Model::encode(const std::string& text, bool bos) const {
  std::vector<int32_t> ids;
  if (bos) ids.push_back(static_cast<int32_t>(config_.bos));
  const std::vector<int32_t> of_text = guarded(Exit::kInput, [&] { return need_tokenizer("a text").encode(text); });
  ids.insert(ids.end(), of_text.begin(), of_text.end());
  return ids;
}

void Model::check_ids(const std::vector<int32_t>& ids) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= config_.vocabulary) {
      throw Failure(Exit::kInput, fmt::format("--ids: {} is outside the vocabulary of {}", id, config_.vocabulary));
    }
  }
}

PackOptions resolve_pack(const WeightOptions& weights, const MachineOptions& machine, std::string* reason) {
  WeightType type = WeightType::kKeep;
  if (weights.weights == "auto") {
    omni_machine here = {};
    here.size = sizeof here;
    check(omni_get_machine(&here), "omni_get_machine");
    const WeightPath path = choose_weight_path(here, machine.priority == "fidelity" ? Priority::kFidelity : Priority::kSpeed);
    type = path.type;
    *reason = path.reason;
  } else {
    type = *parse_weight_type(weights.weights);
    *reason = "as asked";
  }
  return pack_options(weights, type);
}

PackOptions pack_options(const WeightOptions& weights, WeightType type) {
  PackOptions options;
  options.weights = type;
  options.group = weights.group.value_or(default_group(type));
  options.symmetric = weights.symmetric;
  options.head = weights.head == "auto" ? default_head(type) : *parse_head_type(weights.head);
  options.quantiser = weights.quantiser == "nearest" ? Quantiser::kNearest : Quantiser::kSearch;
  options.keep = weights.keep;
  return options;
}

void Model::pack(const WeightOptions& weights, const MachineOptions& machine) {
  std::string reason;
  const PackOptions options = resolve_pack(weights, machine, &reason);
  ProgressLine progress("packing");
  PackResult result;
  const Checkpoint checkpoint = Checkpoint::open(path_);
  weights_ = pack_in_memory(
      checkpoint, options, &result, [&](const std::string&, uint64_t done, uint64_t total) { progress.show(done, total); },
      nullptr);
  notes_ = std::move(result.notes);
  form_ = fmt::format("{} ({}): {}", weight_type_name(options.weights), layouts_of(*weights_), reason);
}

void Model::load(const WeightOptions& weights, const MachineOptions& machine) {
  const Clock::time_point start = Clock::now();
  guarded(Exit::kModel, [&] {
    if (!is_packed(path_)) {
      pack(weights, machine);
    } else {
      if (weights.weights != "auto" || weights.group || weights.head != "auto" || weights.symmetric || !weights.keep.empty()) {
        throw Failure(Exit::kUsage, fmt::format("{}: is packed: --weights, --group, --sym, --head and --keep are for source "
                                                "directories, use omni-pack",
                                                path_.string()));
      }
      const WeightsMemory memory = machine.weights_memory == "auto"   ? kDefaultMemory
                                   : machine.weights_memory == "huge" ? WeightsMemory::kHuge
                                                                      : WeightsMemory::kMapped;
      weights_ = load_packed(path_, memory, nullptr);
      form_ = fmt::format("{}: as packed", layouts_of(*weights_));
    }
  });
  load_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
}

spark::Decoder Model::decoder(const WeightOptions& weights, const MachineOptions& machine, int64_t context) const {
  spark::DecoderOptions options;
  options.context = context;
  options.chunk = std::min(machine.chunk, context);
  options.cache = parse_kv(weights.kv);
  options.precision = parse_precision(weights.precision);
  options.int8_head_rows = weights.head_rows == "int8";
  return guarded(Exit::kModel, [&] { return spark::Decoder(weights_, options); });
}

}  // namespace ref::cli
