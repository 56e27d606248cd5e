// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <dnnl.hpp>
#include <unordered_map>

#include "bench/generator.h"
#include "bench/ops/linear.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

/// s8 rows times s8 weights with one output scale a channel. This version of the library has no scales for rows, so rows are
/// quantised outside the timed call and their scales are applied when the output is compared: it does less than our arms do.
class OneDnnInt8Arm final : public LoopArm {
 public:
  OneDnnInt8Arm(std::string name, LinearWorkload& workload) : workload_(workload) {
    info_.name = std::move(name);
    info_.flops = operations_of(workload.the_case());
  }

  void prepare() override {
    const Case& c = workload_.the_case();
    const int64_t n = c.n();
    const int64_t k = c.k();
    const int64_t m = c.m;
    if (static_cast<int64_t>(c.group) < k) throw Refused("oneDNN has one scale a channel: --group K");
    omp_set_num_threads(static_cast<int>(c.threads));
    using Tag = dnnl::memory::format_tag;
    using Type = dnnl::memory::data_type;
    std::vector<float> scales(static_cast<size_t>(n));
    for (int64_t i = 0; i < n; ++i) scales[i] = bf16_to_float(workload_.first<uint16_t>(kScales)[i]);
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(1 << 1, scales);
    const dnnl::memory::desc x({m, k}, Type::s8, Tag::ab);
    const dnnl::memory::desc w({k, n}, Type::s8, Tag::any);
    const dnnl::memory::desc y({m, n}, Type::bf16, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), attributes, engine_);
    matmul_ = dnnl::matmul(description);
    info_.detail = fmt::format("oneDNN {}.{}.{} matmul, {}, prepacked s8 weights, rows quantised before, their scales left out",
                               dnnl_version()->major, dnnl_version()->minor, dnnl_version()->patch, description.impl_info_str());
    const size_t packed_bytes = description.weights_desc().get_size();
    info_.bytes = static_cast<double>(packed_bytes) + static_cast<double>(m * k + 2 * m * n + 4 * n);

    const Block plain(static_cast<size_t>(n * k));
    workload_.pool().run(n, [&](int64_t channel) {
      for (int64_t i = 0; i < k; ++i) {
        plain.data()[channel * k + i] = static_cast<uint8_t>(static_cast<int8_t>(workload_.weight(channel, i) / scales[channel]));
      }
    });
    rows_ = Block(static_cast<size_t>(m * k));
    for (int64_t row = 0; row < m; ++row) {
      const QuantizedRow quantized = scalar_quantize(static_cast<const uint16_t*>(workload_.x()) + row * k, k);
      std::memcpy(rows_.data() + row * k, quantized.codes.data(), static_cast<size_t>(k));
      row_scales_.push_back(quantized.scale);
    }
    const auto copies = c.hot ? 1 : copies_for(static_cast<double>(packed_bytes), static_cast<double>(packed_bytes));
    const size_t stride = align_to_line(packed_bytes);
    block_ = Block(static_cast<size_t>(copies) * stride);
    for (int64_t i = 0; i < copies; ++i) {
      uint8_t* data = block_.data() + static_cast<size_t>(i) * stride;
      weights_.emplace_back(description.weights_desc(), engine_, data);
      if (i > 0) {
        std::memcpy(data, block_.data(), packed_bytes);
        continue;
      }
      dnnl::memory source({{k, n}, Type::s8, Tag::ba}, engine_, plain.data());
      dnnl::reorder(source, weights_[0]).execute(stream_, source, weights_[0]);
      stream_.wait();
    }
    const dnnl::memory x_memory(x, engine_, rows_.data());
    const dnnl::memory y_memory(y, engine_, workload_.y());
    for (const dnnl::memory& weights : weights_) {
      arguments_.push_back({{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y_memory}});
    }
  }

  Verification verify() override {
    call();
    const Case& c = workload_.the_case();
    std::vector<float> scaled(static_cast<size_t>(c.m * c.n()));
    for (int64_t i = 0; i < c.m * c.n(); ++i) scaled[i] = bf16_to_float(workload_.y()[i]) * row_scales_[i / c.n()];
    return workload_.compare(scaled.data(), scaled.size() * 4, true, "int8-activations");
  }

 protected:
  void call() override {
    cursor_ = cursor_ + 1 < arguments_.size() ? cursor_ + 1 : 0;
    matmul_.execute(stream_, arguments_[cursor_]);
    stream_.wait();
  }

 private:
  LinearWorkload& workload_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul matmul_;
  Block block_, rows_;
  std::vector<float> row_scales_;
  std::vector<dnnl::memory> weights_;
  std::vector<std::unordered_map<int, dnnl::memory>> arguments_;
  size_t cursor_ = 0;
};

}  // namespace

std::unique_ptr<Arm> make_onednn_int8_arm(std::string name, LinearWorkload& workload) {
  return std::make_unique<OneDnnInt8Arm>(std::move(name), workload);
}

}  // namespace omnibench
