// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/tensor_use.h"

#include <algorithm>
#include <array>

#include "reference/core/error.h"
#include "reference/pack/plan.h"

namespace ref {
namespace {

constexpr size_t kMostNotes = 8;  // of unknown tensors, each

// What may stand behind the name of a linear module, besides its bias.
constexpr std::array kModuleParts = {"weight",       "qweight",           "qzeros",       "scales",      "g_idx", "weight_packed",
                                     "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx"};

}  // namespace

bool TensorUse::knows(const std::string& tensor) const {
  if (tensors_.contains(tensor)) return true;
  const size_t dot = tensor.rfind('.');
  if (dot == tensor.npos || !modules_.contains(tensor.substr(0, dot))) return false;
  const std::string part = tensor.substr(dot + 1);
  return std::find(kModuleParts.begin(), kModuleParts.end(), part) != kModuleParts.end();
}

void TensorUse::note_unknown(const Checkpoint& checkpoint, const std::function<bool(const std::string&)>& expected,
                             const PackOptions& options, std::vector<std::string>* notes) const {
  const std::string directory = checkpoint.directory().string();
  size_t unknown = 0;
  for (const auto& [tensor, view] : checkpoint.tensors()) {
    if (knows(tensor) || expected(tensor)) continue;
    const std::string note = directory + ": tensor \"" + tensor + "\" is no part of the model";
    if (options.strict) throw Error(note);
    if (++unknown <= kMostNotes) notes->push_back(note + " and was left out");
  }
  if (unknown > kMostNotes) notes->push_back(directory + ": " + std::to_string(unknown - kMostNotes) + " more such tensors");
}

void TensorUse::note_patterns(const PackOptions& options, const std::vector<std::string>& others,
                              std::vector<std::string>* notes) const {
  for (const std::string& pattern : options.keep) {
    const PackOptions one{.keep = {pattern}};
    const auto matches = [&](const std::string& module) { return is_kept(one, module); };
    if (std::none_of(others.begin(), others.end(), matches) && std::none_of(modules_.begin(), modules_.end(), matches)) {
      notes->push_back("--keep " + pattern + " matches no module");
    }
  }
}

}  // namespace ref
