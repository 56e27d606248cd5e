// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <cstring>
#include <dnnl.hpp>
#include <unordered_map>

#include "bench/machine.h"
#include "bench/ops/linear.h"

namespace omnibench {
namespace {

using Type = dnnl::memory::data_type;

/// A matmul on weights in oneDNN's own order. bf16 with bf16 weights (four times the bytes of 4-bit ones), or fp32 with fp32.
class OneDnnArm final : public LoopArm {
 public:
  OneDnnArm(std::string name, LinearWorkload& workload) : workload_(workload) {
    info_.name = std::move(name);
    info_.flops = operations_of(workload.the_case());
    wide_ = workload.form().x_type == OMNI_DTYPE_F32;
  }

  void prepare() override {
    const Case& c = workload_.the_case();
    const int64_t n = c.n();
    const int64_t k = c.k();
    const int64_t m = c.m;
    const size_t element = wide_ ? 4 : 2;
    // Checked first: dequantising and reordering a matrix that is then refused would take seconds.
    const double weight_bytes = static_cast<double>(element) * static_cast<double>(n) * static_cast<double>(k);
    if (c.hot && weight_bytes > static_cast<double>(last_level_cache())) {
      throw Refused(fmt::format("its weights take {:.0f} MB and do not stay in the last-level cache", weight_bytes / 1e6));
    }
    omp_set_num_threads(static_cast<int>(c.threads));
    using Tag = dnnl::memory::format_tag;
    const Type type = wide_ ? Type::f32 : Type::bf16;
    const dnnl::memory::desc x({m, k}, type, Tag::ab);
    const dnnl::memory::desc w({k, n}, type, Tag::any);
    const dnnl::memory::desc y({m, n}, Type::bf16, Tag::ab);
    const dnnl::memory::desc y_wide({m, n}, Type::f32, Tag::ab);
    const dnnl::matmul::primitive_desc description(dnnl::matmul::desc(x, w, wide_ ? y_wide : y), engine_);
    matmul_ = dnnl::matmul(description);
    info_.detail = fmt::format("oneDNN {}.{}.{} matmul, {}, prepacked {} weights", dnnl_version()->major, dnnl_version()->minor,
                               dnnl_version()->patch, description.impl_info_str(), wide_ ? "fp32" : "bf16");
    const size_t packed_bytes = description.weights_desc().get_size();
    info_.bytes = static_cast<double>(packed_bytes) + static_cast<double>(element) * static_cast<double>(m * (k + n));
    if (c.hot && info_.bytes > static_cast<double>(last_level_cache())) {
      throw Refused(fmt::format("its packed weights take {:.0f} MB and do not stay in the last-level cache", info_.bytes / 1e6));
    }

    // [N][K] row-major, the memory order "ba" of a K x N matrix, then oneDNN's own order.
    const Block plain(element * static_cast<size_t>(n * k));
    workload_.pool().run(n, [&](int64_t channel) {
      for (int64_t i = 0; i < k; ++i) {
        if (wide_) {
          reinterpret_cast<float*>(plain.data())[channel * k + i] = static_cast<float>(workload_.weight(channel, i));
        } else {
          reinterpret_cast<uint16_t*>(plain.data())[channel * k + i] = workload_.weight_bf16(channel, i);
        }
      }
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
      dnnl::memory source({{k, n}, type, Tag::ba}, engine_, plain.data());
      dnnl::reorder(source, weights_[0]).execute(stream_, source, weights_[0]);
      stream_.wait();
    }
    if (wide_) wide_output_.resize(static_cast<size_t>(m * n));
    const dnnl::memory x_memory(x, engine_, const_cast<void*>(workload_.x()));
    const dnnl::memory y_memory =
        wide_ ? dnnl::memory(y_wide, engine_, wide_output_.data()) : dnnl::memory(y, engine_, workload_.y());
    for (const dnnl::memory& weights : weights_) {
      arguments_.push_back({{DNNL_ARG_SRC, x_memory}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y_memory}});
    }
  }

  Verification verify() override {
    call();
    const size_t elements = workload_.parts()[kY].bytes / 2;
    const char* how = wide_ ? "accumulation" : "bf16-weights";
    return wide_ ? workload_.compare(wide_output_.data(), elements * 4, true, how)
                 : workload_.compare(workload_.y(), elements * 2, false, how);
  }

 protected:
  void call() override {
    cursor_ = cursor_ + 1 < arguments_.size() ? cursor_ + 1 : 0;
    matmul_.execute(stream_, arguments_[cursor_]);
    stream_.wait();
  }

 private:
  LinearWorkload& workload_;
  bool wide_ = false;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::matmul matmul_;
  Block block_;  // of all copies
  std::vector<float> wide_output_;
  std::vector<dnnl::memory> weights_;
  std::vector<std::unordered_map<int, dnnl::memory>> arguments_;
  size_t cursor_ = 0;
};

}  // namespace

std::unique_ptr<Arm> make_onednn_arm(std::string name, LinearWorkload& workload) {
  return std::make_unique<OneDnnArm>(std::move(name), workload);
}

}  // namespace omnibench
