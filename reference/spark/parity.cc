// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/parity.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/shape_text.h"

namespace ref::spark {
namespace {

using omni_files::SafetensorsFile;
using omni_files::Tensor;

std::vector<int32_t> read_ids(const SafetensorsFile& golden, const std::string& name) {
  const Tensor& tensor = golden.at(name);
  if (tensor.dtype != "I32" || tensor.shape.size() != 1) {
    throw Error(golden.name() + ": tensor \"" + name + "\" is " + tensor.dtype + " " + shape_text(tensor.shape) + ", not I32 [n]");
  }
  return tensor.as<int32_t>();
}

struct Difference {
  double error = 0, size = 0, largest = 0;

  void add(float ours, float golden) {
    const double difference = static_cast<double>(ours) - static_cast<double>(golden);
    error += difference * difference;
    size += static_cast<double>(golden) * static_cast<double>(golden);
    largest = std::isnan(difference) ? difference : std::max(largest, std::abs(difference));
  }
  double relative() const { return error == 0 ? 0 : std::sqrt(error / size); }
};

// Rows of the golden's tensors meet ours as they are made.
class Comparer final : public Observer {
 public:
  Comparer(const SafetensorsFile& golden, int64_t tokens) : golden_(golden), rows_(static_cast<size_t>(tokens), -1) {
    if (golden.find("positions") == nullptr) {
      for (int64_t i = 0; i < tokens; ++i) rows_[static_cast<size_t>(i)] = i;
      stored_ = tokens;
      return;
    }
    for (const int32_t position : read_ids(golden, "positions")) {
      if (position < 0 || position >= tokens) {
        throw Error(golden.name() + ": position " + std::to_string(position) + " of " + std::to_string(tokens) + " tokens");
      }
      rows_[static_cast<size_t>(position)] = stored_++;
    }
  }

  bool wants(const std::string& name) const override { return golden_.find(name) != nullptr; }

  void tensor(const std::string& name, int64_t position, int64_t rows, int64_t columns, omni_dtype type, const void* data,
              int64_t ld) override {
    Entry& entry = entry_of(name, columns);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = rows_[static_cast<size_t>(position + i)];
      if (row < 0) continue;
      ++entry.seen;
      const float* golden = entry.values.data() + row * columns;
      for (int64_t c = 0; c < columns; ++c) {
        const int64_t at = i * ld + c;
        const float ours =
            type == OMNI_DTYPE_F32 ? static_cast<const float*>(data)[at] : widen_bf16(static_cast<const uint16_t*>(data)[at]);
        entry.difference.add(ours, golden[c]);
      }
    }
  }

  std::vector<TensorParity> result() const {
    std::vector<TensorParity> tensors;
    for (const std::string& name : order_) {
      const Entry& entry = entries_.at(name);
      if (entry.seen != stored_) {
        throw Error(golden_.name() + ": tensor \"" + name + "\" was compared in " + std::to_string(entry.seen) + " rows of " +
                    std::to_string(stored_));
      }
      tensors.push_back({name, entry.difference.relative(), entry.difference.largest});
    }
    return tensors;
  }

 private:
  struct Entry {
    std::vector<float> values;
    Difference difference;
    int64_t seen = 0;
  };

  Entry& entry_of(const std::string& name, int64_t columns) {
    const auto [found, made] = entries_.try_emplace(name);
    if (!made) return found->second;
    const Tensor& tensor = golden_.at(name);
    if (tensor.dtype != "F32" || tensor.shape.empty() || tensor.shape[0] != stored_ || tensor.elements() != stored_ * columns) {
      throw Error(golden_.name() + ": tensor \"" + name + "\" is " + tensor.dtype + " " + shape_text(tensor.shape) +
                  ", not F32 with " + std::to_string(stored_) + " rows of " + std::to_string(columns));
    }
    found->second.values = tensor.as<float>();
    order_.push_back(name);
    return found->second;
  }

  const SafetensorsFile& golden_;
  std::vector<int64_t> rows_;  // by position: the row of the golden's tensors, or -1
  int64_t stored_ = 0;
  std::map<std::string, Entry> entries_;
  std::vector<std::string> order_;
};

int32_t largest(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// The prompt's last logits are in `logits`.
void compare_greedy(Decoder& decoder, const SafetensorsFile& golden, std::vector<float>* logits, ParityReport* report) {
  const std::vector<int32_t> ids = read_ids(golden, "greedy_ids");
  const size_t vocabulary = logits->size();
  std::vector<float> expected, margins;
  if (const Tensor* tensor = golden.find("greedy_logits")) {
    if (tensor->dtype != "F32" || static_cast<size_t>(tensor->elements()) != ids.size() * vocabulary) {
      throw Error(golden.name() + ": tensor \"greedy_logits\" is " + tensor->dtype + " " + shape_text(tensor->shape) + ", not " +
                  shape_text({static_cast<int64_t>(ids.size()), static_cast<int64_t>(vocabulary)}));
    }
    expected = tensor->as<float>();
  }
  if (const Tensor* tensor = golden.find("greedy_margin"); tensor != nullptr && tensor->dtype == "F32") {
    margins = tensor->as<float>();
  }
  margins.resize(ids.size());
  Difference difference;
  for (size_t step = 0; step < ids.size(); ++step) {
    if (step > 0) decoder.forward({&ids[step - 1], 1}, Rows::kLast, *logits);
    report->greedy.push_back({ids[step], largest(*logits), margins[step]});
    for (size_t i = 0; i < vocabulary && !expected.empty(); ++i) difference.add((*logits)[i], expected[step * vocabulary + i]);
  }
  report->greedy_logits = difference.relative();
}

}  // namespace

const TensorParity* ParityReport::first_departure(double tolerance) const {
  for (const TensorParity& tensor : tensors) {
    if (!(tensor.relative <= tolerance)) return &tensor;
  }
  return nullptr;
}

const TensorParity* ParityReport::find(const std::string& name) const {
  for (const TensorParity& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

std::optional<size_t> ParityReport::first_other_token() const {
  for (size_t i = 0; i < greedy.size(); ++i) {
    if (greedy[i].expected != greedy[i].found) return i;
  }
  return std::nullopt;
}

ParityReport compare_with_golden(Decoder& decoder, const SafetensorsFile& golden) {
  const std::vector<int32_t> prompt = read_ids(golden, "prompt_ids");
  if (prompt.empty()) throw Error(golden.name() + ": tensor \"prompt_ids\" is empty");
  ParityReport report;
  decoder.reset();
  Comparer comparer(golden, static_cast<int64_t>(prompt.size()));
  decoder.forward(prompt, Rows::kAll, {}, &comparer);
  report.tensors = comparer.result();
  if (golden.find("greedy_ids") == nullptr) return report;
  // The pass above kept no logits; the last token once more has the bits that it had.
  std::vector<float> logits(static_cast<size_t>(decoder.config().vocabulary));
  decoder.rewind(static_cast<int64_t>(prompt.size()) - 1);
  decoder.forward({&prompt.back(), 1}, Rows::kLast, logits);
  compare_greedy(decoder, golden, &logits, &report);
  return report;
}

}  // namespace ref::spark
