// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/matrix_packer.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/pack/calibration.h"
#include "reference/pack/random_fill.h"
#include "reference/pack/rounding_error.h"
#include "reference/pack/scale_array.h"
#include "reference/pack/source_scan.h"

namespace ref {
namespace {

constexpr int64_t kBlockRows = 64;  // a packed format is an array of blocks of so many rows
// fp32 rows, their codes and the packed bytes; two fp32 copies of dense rows.
constexpr int64_t kBytesPerWeight = 8;

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Rows [n0, n1) of a stack, as runs of its sources: call(source, first row, end row, row of the slice).
template <typename Call>
void for_each_run(const std::vector<LinearSource>& sources, int64_t n0, int64_t n1, const Call& call) {
  int64_t begin = 0;
  for (const LinearSource& source : sources) {
    const int64_t from = std::max(n0, begin), to = std::min(n1, begin + source.n);
    if (from < to) call(source, from - begin, to - begin, from - n0);
    begin += source.n;
  }
}

// Where rows of a dense source lie; of a transposed convolution they lie everywhere.
Bytes rows_of(const LinearSource& source, int64_t n0, int64_t n1) {
  const Bytes bytes = source.dense->bytes();
  if (source.order == RowOrder::kTransposed) return bytes;
  const auto row = bytes.size() / static_cast<size_t>(source.n);
  return bytes.subspan(row * static_cast<size_t>(n0), row * static_cast<size_t>(n1 - n0));
}

class MatrixPacker {
 public:
  MatrixPacker(const MatrixPlan& plan, const PackTarget& target)
      : plan_(plan), target_(target), scales_(plan.layout), error_(target.parallel) {}

  TensorReport run() {
    const Stopwatch watch;
    const int64_t n = plan_.layout.n;
    const int64_t step = std::max(kBlockRows, kSliceBytes / (kBytesPerWeight * plan_.layout.k) / kBlockRows * kBlockRows);
    if (plan_.route == Route::kImport) import_scales();
    // Stacked sources have the same inputs.
    Calibration* calibration = target_.options.calibration;
    if (plan_.route == Route::kInt4 && plan_.quantiser != Quantiser::kNearest && calibration != nullptr) {
      inputs_ = &calibration->inputs(plan_.sources.front().name);
    }
    for (int64_t n0 = 0; n0 < n; n0 += step) {
      const int64_t n1 = std::min(n, n0 + step);
      request_slice(n1, std::min(n, n1 + step));
      pack_slice(n0, n1);
      release_slice(n0, n1);
    }
    for (const LinearSource& source : plan_.sources) release_pages(source);
    write_rest();
    const std::string text = layout_text(plan_.layout);
    return {plan_.name, text, n, plan_.layout.k, stored_, error_.relative(), watch.seconds()};
  }

 private:
  std::string tensor(const char* part) const { return plan_.name + part; }

  omni_layout slice_layout(int64_t rows) const {
    omni_layout layout = plan_.layout;
    check_omni(omni_layout_init(&layout, static_cast<omni_format>(layout.format), rows, layout.k, layout.group,
                                static_cast<omni_dtype>(layout.scale_type)),
               plan_.name);
    layout.flags |= plan_.layout.flags & (OMNI_LAYOUT_ZEROS | OMNI_LAYOUT_SCRUBBED);
    return layout;
  }

  void pack_slice(int64_t n0, int64_t n1) {
    slice_ = slice_layout(n1 - n0);
    size_t bytes = 0;
    check_omni(omni_packed_size(&slice_, &bytes), plan_.name);
    const size_t codes = target_.image.index.at(tensor(".codes"));
    out_ = target_.sink.acquire(codes, done_, bytes);
    switch (plan_.route) {
      case Route::kDense:
        pack_dense(n0, n1);
        break;
      case Route::kInt8:
        quantise_int8(n0, n1);
        break;
      case Route::kInt4:
        quantise_int4(n0, n1);
        break;
      case Route::kImport:
        import_codes(n0, n1);
        break;
      case Route::kRandom:
        fill_random(n0, n1);
        break;
    }
    target_.sink.commit();
    done_ += bytes;
    count(bytes);
  }

  void count(size_t bytes) {
    stored_ += bytes;
    if (target_.written) target_.written(plan_.name, bytes);
  }

  // Rows in fp32.
  void read(int64_t n0, int64_t n1) {
    const int64_t k = plan_.layout.k;
    rows_.resize(static_cast<size_t>((n1 - n0) * k));
    for_each_run(plan_.sources, n0, n1, [&](const LinearSource& source, int64_t from, int64_t to, int64_t at) {
      read_rows(source, from, to, rows_.data() + at * k);
    });
  }

  // A quantiser has no answer to NaN and infinity; the user gets the place.
  void read_finite(int64_t n0, int64_t n1) {
    read(n0, n1);
    const int64_t k = plan_.layout.k;
    const std::optional<int64_t> bad = find_unusable(rows_.data(), n1 - n0, k, target_.parallel);
    if (!bad) return;
    for_each_run(plan_.sources, n0, n1, [&](const LinearSource& source, int64_t from, int64_t to, int64_t at) {
      const int64_t row = *bad / k - at + from;
      if (row < from || row >= to) return;
      throw Error((source.dense != nullptr ? source.dense->where() : "module \"" + source.name + "\"") + " row " +
                  std::to_string(row) + ", column " + std::to_string(*bad % k) + " cannot be quantised");
    });
  }

  void pack_dense(int64_t n0, int64_t n1) {
    omni_pack_dense_args args = {};
    args.size = sizeof args;
    args.layout = slice_;
    args.out = out_.data();
    args.out_bytes = out_.size();
    args.parallel = target_.parallel;
    const LinearSource& first = plan_.sources.front();
    Bytes direct;
    const bool in_order = first.dense != nullptr && first.order == RowOrder::kRows;
    if (plan_.sources.size() == 1 && in_order) direct = rows_of(first, n0, n1);
    const bool same_type = std::all_of(plan_.sources.begin(), plan_.sources.end(), [&](const LinearSource& source) {
      return source.dense != nullptr && source.dense->dtype() == first.dense->dtype();
    });
    const bool rounds = slice_.format == OMNI_FORMAT_W16 && !(same_type && first.dense->dtype() == "BF16");
    if (rounds || !same_type || direct.empty()) {
      read(n0, n1);
      if (rounds) error_.add_bf16(rows_.data(), n1 - n0, slice_.k);
      direct = std::as_bytes(std::span(rows_));
      args.source_type = OMNI_DTYPE_F32;
    } else {
      args.source_type = static_cast<uint16_t>(plain_type(*first.dense));
      direct = aligned(direct);
    }
    args.source = direct.data();
    args.source_bytes = direct.size();
    check_omni(omni_pack_dense(&args, nullptr), plan_.name);
  }

  // A file may place a tensor anywhere.
  Bytes aligned(Bytes bytes) {
    if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0) return bytes;
    rows_.resize((bytes.size() + 3) / 4);
    std::memcpy(rows_.data(), bytes.data(), bytes.size());
    return std::as_bytes(std::span(rows_)).first(bytes.size());
  }

  void quantise_int8(int64_t n0, int64_t n1) {
    const int64_t rows = n1 - n0, k = slice_.k, group = std::min<int64_t>(slice_.group, k), groups = (k + group - 1) / group;
    read_finite(n0, n1);
    codes_.resize(static_cast<size_t>(rows * k));
    slice_scales_.resize(static_cast<size_t>(rows * groups));
    auto* codes = reinterpret_cast<int8_t*>(codes_.data());
    quantise_rows_s8(rows_.data(), rows, k, k, group, slice_.scale_type == OMNI_DTYPE_BF16, codes, slice_scales_.data(),
                     target_.parallel);
    scales_.store(n0, rows, slice_scales_.data());
    error_.add_int8(rows_.data(), rows, k, group, codes, slice_scales_.data());
    repack(OMNI_FORMAT_CODES_S8, nullptr);
  }

  void quantise_int4(int64_t n0, int64_t n1) {
    const int64_t rows = n1 - n0, k = slice_.k, group = std::min<int64_t>(slice_.group, k), groups = (k + group - 1) / group;
    read_finite(n0, n1);
    codes_.resize(static_cast<size_t>(rows * k));
    slice_scales_.resize(static_cast<size_t>(rows * groups));
    zeros_.resize(static_cast<size_t>(rows * groups));
    QuantisedRows out{codes_.data(), slice_scales_.data(), zeros_.data()};
    // w4s has zero points; the offsets of tg4 may be any number.
    if (slice_.format == OMNI_FORMAT_TG4 && !plan_.symmetric) {
      offsets_.resize(zeros_.size());
      out.offsets = offsets_.data();
    }
    if (plan_.quantiser == Quantiser::kGptq) {
      quantise_rows_gptq(rows_.data(), rows, k, k, group, plan_.symmetric, *inputs_, out, target_.parallel);
    } else {
      quantise_rows(rows_.data(), rows, k, k, group, plan_.symmetric, plan_.quantiser, inputs_, out, target_.parallel);
    }
    if (out.offsets != nullptr && slice_.scale_type == OMNI_DTYPE_BF16) {
      for (float& offset : offsets_) offset = widen_bf16(round_bf16(offset));
    }
    scales_.store(n0, rows, out);
    error_.add(rows_.data(), rows, k, group, out);
    repack(OMNI_FORMAT_CODES_U8, nullptr);
  }

  void import_scales() {
    std::vector<float> scales;
    std::vector<uint8_t> zeros;
    int64_t n0 = 0;
    for (const LinearSource& source : plan_.sources) {
      read_scales(source, &scales, &zeros);
      scales_.store(n0, source.n, {nullptr, scales.data(), zeros.data()});
      n0 += source.n;
    }
  }

  void import_codes(int64_t n0, int64_t n1) {
    const int64_t k = slice_.k;
    codes_.resize(static_cast<size_t>((n1 - n0) * k));
    for_each_run(plan_.sources, n0, n1, [&](const LinearSource& source, int64_t from, int64_t to, int64_t at) {
      read_codes(source, from, to, codes_.data() + at * k);
    });
    repack(OMNI_FORMAT_CODES_U8, plan_.permuted() ? plan_.sources.front().g_idx.data() : nullptr);
  }

  void repack(omni_format from, const int32_t* g_idx) {
    omni_repack_args args = {};
    args.size = sizeof args;
    args.source_format = static_cast<uint16_t>(from);
    args.destination_format = slice_.format;
    args.n = slice_.n;
    args.k = slice_.k;
    args.source = codes_.data();
    args.source_bytes = codes_.size();
    args.destination = out_.data();
    args.destination_bytes = out_.size();
    args.parallel = target_.parallel;
    if (g_idx != nullptr) {
      permutation_.resize(static_cast<size_t>(slice_.k));
      args.g_idx = g_idx;
      args.group = slice_.group;
      args.k_permutation = permutation_.data();
    }
    check_omni(omni_repack(&args), "module \"" + plan_.sources.front().name + "\"");
  }

  void fill_random(int64_t n0, int64_t n1) {
    RandomFill random(tensor(".codes") + std::to_string(n0));
    if (slice_.format == OMNI_FORMAT_W16 || slice_.format == OMNI_FORMAT_W32) {
      random.values(out_, slice_.format == OMNI_FORMAT_W16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32, 0, plan_.deviation);
      return;
    }
    random.bytes(out_);
    const int64_t rows = n1 - n0, groups = (slice_.k + slice_.group - 1) / slice_.group;
    slice_scales_.assign(static_cast<size_t>(rows * groups), random_scale(slice_, plan_.deviation));
    if (slice_.format == OMNI_FORMAT_W8S) return scales_.store(n0, rows, slice_scales_.data());
    zeros_.resize(slice_scales_.size());
    // Zero points 7 and 8, so that the mean of the weights is that of uniform codes: 0.
    for (size_t i = 0; i < zeros_.size(); ++i) zeros_[i] = plan_.symmetric ? 8 : static_cast<uint8_t>(7 + i % 2);
    scales_.store(n0, rows, {nullptr, slice_scales_.data(), zeros_.data()});
  }

  void write_rest() {
    const Bytes all = scales_.bytes();
    if (!all.empty()) write(".scales", all.first(scales_.scale_bytes()));
    if (scales_.scale_bytes() < all.size()) write(".zeros", all.subspan(scales_.scale_bytes()));
    if (plan_.permuted()) write(".permutation", std::as_bytes(std::span(permutation_)));
  }

  void write(const char* part, Bytes bytes) {
    const size_t index = target_.image.index.at(tensor(part));
    const std::span<std::byte> out = target_.sink.acquire(index, 0, bytes.size());
    std::memcpy(out.data(), bytes.data(), bytes.size());
    target_.sink.commit();
    count(bytes.size());
  }

  // Only rows of a dense source are one piece of its file.
  void request_slice(int64_t n0, int64_t n1) {
    for_each_run(plan_.sources, n0, n1, [&](const LinearSource& source, int64_t from, int64_t to, int64_t) {
      if (source.dense != nullptr) request_pages(rows_of(source, from, to));
    });
  }
  void release_slice(int64_t n0, int64_t n1) {
    for_each_run(plan_.sources, n0, n1, [&](const LinearSource& source, int64_t from, int64_t to, int64_t) {
      if (source.dense != nullptr) release_pages(rows_of(source, from, to));
    });
  }

  const MatrixPlan& plan_;
  const PackTarget& target_;
  const InputMoments* inputs_ = nullptr;
  ScaleArray scales_;
  RoundingError error_;
  omni_layout slice_ = {};
  std::span<std::byte> out_;
  uint64_t done_ = 0, stored_ = 0;
  std::vector<float> rows_, slice_scales_, offsets_;
  std::vector<uint8_t> codes_, zeros_;
  std::vector<int32_t> permutation_;
};

// A tensor's bytes, from one type to another that holds its values.
void convert(Bytes from, omni_dtype from_type, omni_dtype to_type, std::span<std::byte> to) {
  if (from_type == to_type) {
    std::memcpy(to.data(), from.data(), to.size());
    return;
  }
  for (size_t i = 0; i < to.size() / 4; ++i) {
    uint16_t bits;
    std::memcpy(&bits, from.data() + 2 * i, 2);
    const float value = from_type == OMNI_DTYPE_F16 ? widen_f16(bits) : widen_bf16(bits);
    std::memcpy(to.data() + 4 * i, &value, 4);
  }
}

}  // namespace

TensorReport pack_matrix(const MatrixPlan& plan, const PackTarget& target) { return MatrixPacker(plan, target).run(); }

TensorReport pack_plain(const PlainPlan& plan, const PackTarget& target) {
  const Stopwatch watch;
  const size_t index = target.image.index.at(plan.name), width = plan.type == OMNI_DTYPE_F32 ? 4 : 2;
  uint64_t done = 0;
  RandomFill random(plan.name);
  // Elements [done, done + count) by fill(out), in pieces.
  const auto write = [&](uint64_t elements, const auto& fill) {
    constexpr uint64_t kPiece = kSliceBytes / kBytesPerWeight;
    for (uint64_t at = 0; at < elements; at += kPiece) {
      const uint64_t count = std::min(kPiece, elements - at);
      const std::span<std::byte> out = target.sink.acquire(index, done, count * width);
      fill(at, count, out);
      target.sink.commit();
      done += out.size();
      if (target.written) target.written(plan.name, out.size());
    }
  };
  for (const TensorView* tensor : plan.tensors) {
    const omni_dtype type = plain_type(*tensor);
    const size_t from_width = type == OMNI_DTYPE_F32 ? 4 : 2;
    write(tensor->bytes().size() / from_width, [&](uint64_t at, uint64_t count, std::span<std::byte> out) {
      const Bytes from = tensor->bytes().subspan(at * from_width, count * from_width);
      convert(from, type, plan.type, out);
      release_pages(from);
    });
  }
  if (plan.derive) {
    write(target.image.tensors[index].bytes / width, [&](uint64_t at, uint64_t count, std::span<std::byte> out) {
      plan.derive(at, {reinterpret_cast<float*>(out.data()), count});
    });
  }
  for (const LinearSource& source : plan.linear) {
    std::vector<float> rows(static_cast<size_t>(source.n * source.k));
    read_rows(source, 0, source.n, rows.data());
    write(rows.size(),
          [&](uint64_t at, uint64_t, std::span<std::byte> out) { std::memcpy(out.data(), rows.data() + at, out.size()); });
  }
  if (plan.tensors.empty() && plan.linear.empty() && !plan.derive) {
    write(target.image.tensors[index].bytes / width,
          [&](uint64_t, uint64_t, std::span<std::byte> out) { random.values(out, plan.type, plan.mean, plan.deviation); });
  }
  const int64_t n = plan.shape.empty() ? 1 : plan.shape.front();
  const int64_t elements = static_cast<int64_t>(done / width);
  return {plan.name, dtype_name(plan.type), n, n == 0 ? 0 : elements / n, done, 0, watch.seconds()};
}

void pack_padding(const PackTarget& target) {
  for (size_t i = 0; i < target.image.tensors.size(); ++i) {
    const StoredTensor& tensor = target.image.tensors[i];
    if (!tensor.name.starts_with(kPadPrefix)) continue;
    const std::span<std::byte> out = target.sink.acquire(i, 0, tensor.bytes);
    std::memset(out.data(), 0, out.size());
    target.sink.commit();
    if (target.written) target.written(tensor.name, out.size());
  }
}

}  // namespace ref
