// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint a plan makes use of, and what a user should hear of the others.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "reference/io/checkpoint.h"
#include "reference/pack/options.h"

namespace ref {

class TensorUse {
 public:
  // The weight of a linear module, in whatever form.
  void add_module(const std::string& module) { modules_.insert(module); }
  void add_tensor(const std::string& tensor) { tensors_.insert(tensor); }

  bool knows(const std::string& tensor) const;
  // Notes what is no part of the model and not `expected` either; throws with PackOptions::strict.
  void note_unknown(const Checkpoint& checkpoint, const std::function<bool(const std::string&)>& expected,
                    const PackOptions& options, std::vector<std::string>* notes) const;
  // Notes patterns of PackOptions::keep that match nothing, neither a module nor one of `others`.
  void note_patterns(const PackOptions& options, const std::vector<std::string>& others, std::vector<std::string>* notes) const;

 private:
  std::set<std::string> modules_, tensors_;
};

}  // namespace ref
