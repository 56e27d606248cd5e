// SPDX-License-Identifier: Apache-2.0
// Models of random weights, whoever's they are: the one place that knows their names.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "reference/pack/plan.h"

namespace ref {

// What a directory is written from: its weights, and files beside them by name.
struct SyntheticModel {
  std::vector<PackPlan> plans;
  std::map<std::string, std::string> files;
};

std::vector<std::string> synthetic_names();
// "model_type" of its config.
std::string synthetic_type(const std::string& name);
// `name` is one of these. Packed, or as a checkpoint in Hugging Face layout.
SyntheticModel synthetic_packed(const std::string& name, const PackOptions& options);
SyntheticModel synthetic_checkpoint(const std::string& name);

}  // namespace ref
