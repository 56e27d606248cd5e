// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <omp.h>

#include <cstring>
#include <dnnl.hpp>
#include <unordered_map>

#include "bench/arms/arms.h"
#include "bench/machine.h"

namespace omnibench {
namespace {

class OneDnnArm final : public LoopArm {
 public:
  OneDnnArm(std::string name, Reference& reference) : reference_(reference), operands_(reference.operands()) {
    info_.name = std::move(name);
    info_.flops = flops(operands_.the_case());
  }

  void prepare() override {
    const Case& c = operands_.the_case();
    const int64_t n = c.shape.n;
    const int64_t k = c.shape.k;
    const int64_t m = c.m;
    // Checked first: dequantising and reordering a matrix that is then refused would take seconds.
    const double weight_bytes = 2.0 * static_cast<double>(n) * static_cast<double>(k);
    if (c.hot && weight_bytes > static_cast<double>(last_level_cache())) {
      throw Refused(fmt::format("its bf16 weights take {:.0f} MB and do not stay in the last-level cache", weight_bytes / 1e6));
    }
    omp_set_num_threads(static_cast<int>(c.threads));
    using Tag = dnnl::memory::format_tag;
    const auto type = dnnl::memory::data_type::bf16;
    const dnnl::memory::desc x({m, k}, type, Tag::ab);
    const dnnl::memory::desc w({k, n}, type, Tag::any);
    const dnnl::memory::desc y({m, n}, type, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, y), engine_);
    matmul_ = dnnl::matmul(description);
    info_.detail = fmt::format("oneDNN {}.{}.{} matmul, {}, prepacked bf16 weights", dnnl_version()->major, dnnl_version()->minor,
                               dnnl_version()->patch, description.impl_info_str());
    const size_t packed_bytes = description.weights_desc().get_size();
    info_.bytes = static_cast<double>(packed_bytes) + static_cast<double>(2 * m * (k + n));
    if (c.hot && info_.bytes > static_cast<double>(last_level_cache())) {
      throw Refused(fmt::format("its packed weights take {:.0f} MB and do not stay in the last-level cache", info_.bytes / 1e6));
    }

    // [N][K] row-major bf16, the memory order "ba" of a K x N matrix, then oneDNN's own order.
    Block plain(static_cast<size_t>(2 * n * k));
    auto* rows = reinterpret_cast<uint16_t*>(plain.data());
    operands_.pool().run(n, [&](int64_t channel) {
      for (int64_t i = 0; i < k; ++i) rows[channel * k + i] = scalar_dequant(operands_.generator(), channel, i);
    });
    const int64_t copies = c.hot ? 1 : copies_for(static_cast<double>(packed_bytes), static_cast<double>(packed_bytes));
    const size_t stride = align_to_line(packed_bytes);
    block_ = Block(static_cast<size_t>(copies) * stride);
    for (int64_t i = 0; i < copies; ++i) {
      uint8_t* data = block_.data() + static_cast<size_t>(i) * stride;
      weights_.emplace_back(description.weights_desc(), engine_, data);
      if (i > 0) {
        std::memcpy(data, block_.data(), packed_bytes);
        continue;
      }
      dnnl::memory source({{k, n}, type, Tag::ba}, engine_, rows);
      dnnl::reorder(source, weights_[0]).execute(stream_, source, weights_[0]);
      stream_.wait();
    }
    x_ = dnnl::memory(x, engine_, const_cast<uint16_t*>(operands_.x()));
    y_ = dnnl::memory(y, engine_, operands_.y());
    for (const dnnl::memory& weights : weights_) {
      arguments_.push_back({{DNNL_ARG_SRC, x_}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y_}});
    }
  }

  Verification verify() override {
    call();
    return reference_.compare_gemv(operands_.y(), false, Tolerance::kBf16Weights);
  }

 protected:
  void call() override {
    cursor_ = cursor_ + 1 < arguments_.size() ? cursor_ + 1 : 0;
    matmul_.execute(stream_, arguments_[cursor_]);
    stream_.wait();
  }

 private:
  Reference& reference_;
  Operands& operands_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul matmul_;
  dnnl::memory x_, y_;
  Block block_;  // of all copies
  std::vector<dnnl::memory> weights_;
  std::vector<std::unordered_map<int, dnnl::memory>> arguments_;
  size_t cursor_ = 0;
};

}  // namespace

std::unique_ptr<Arm> make_onednn_arm(std::string name, Reference& reference) {
  return std::make_unique<OneDnnArm>(std::move(name), reference);
}

}  // namespace omnibench
