// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/dense_prepare.h"

#include <algorithm>
#include <cstring>

#include "kernels/format/bf16.h"

namespace okl {
namespace {

// Gathered pieces pass through a buffer of this many inputs, a multiple of 32.
constexpr int64_t kPiece = 256;

constexpr uint16_t scrub(uint16_t x, uint16_t below) { return (x & 0x7FFF) < below ? 0 : x; }

void copy(const uint16_t* x, int64_t count, uint16_t below, uint16_t* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = scrub(x[i], below);
}

void widen(const uint16_t* x, int64_t count, uint16_t below, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = bf16_to_float(scrub(x[i], below));
}

void widen_odd_first(const uint16_t* x, int64_t count, uint16_t below, float* out) {
  for (int64_t i = 0; i + 1 < count; i += 2) {
    out[i] = bf16_to_float(scrub(x[i + 1], below));
    out[i + 1] = bf16_to_float(scrub(x[i], below));
  }
}

void exchange_pairs(float* out, int64_t slots) {
  for (int64_t i = 0; i + 1 < slots; i += 2) std::swap(out[i], out[i + 1]);
}

// `count` inputs into `slots` elements; those beyond `count` are zero.
void write(const DensePrepareArgs& args, const uint16_t* x, int64_t count, int64_t slots, uint16_t* out) {
  const int64_t steps = count / kDenseRowStep * kDenseRowStep;
  args.kernel->copy(x, steps, args.scrub_below, out);
  copy(x + steps, count - steps, args.scrub_below, out + steps);
  std::fill(out + count, out + slots, uint16_t{0});
}

void write(const DensePrepareArgs& args, const uint16_t* x, int64_t count, int64_t slots, float* out) {
  const int64_t steps = count / kDenseRowStep * kDenseRowStep;
  if (args.order == DenseOrder::kAscending) {
    args.kernel->widen(x, steps, args.scrub_below, out);
    widen(x + steps, count - steps, args.scrub_below, out + steps);
    std::fill(out + count, out + slots, 0.0F);
    return;
  }
  args.kernel->widen_odd_first(x, steps, args.scrub_below, out);
  const int64_t even = count / 2 * 2;
  widen_odd_first(x + steps, even - steps, args.scrub_below, out + steps);
  std::fill(out + even, out + slots, 0.0F);
  if (even < count) out[even + 1] = bf16_to_float(scrub(x[even], args.scrub_below));
}

void write(const float* x, int64_t count, int64_t slots, DenseOrder order, float* out) {
  std::memcpy(out, x, static_cast<size_t>(count) * sizeof(float));
  std::fill(out + count, out + slots, 0.0F);
  if (order == DenseOrder::kOddFirst) exchange_pairs(out, slots);
}

void write_piece(const DensePrepareArgs& args, const uint16_t* x, int64_t count, int64_t slots, uint8_t* out) {
  if (args.element == DenseElement::kBf16Pair) {
    write(args, x, count, slots, reinterpret_cast<uint16_t*>(out));
  } else {
    write(args, x, count, slots, reinterpret_cast<float*>(out));
  }
}
void write_piece(const DensePrepareArgs& args, const float* x, int64_t count, int64_t slots, uint8_t* out) {
  write(x, count, slots, args.order, reinterpret_cast<float*>(out));
}

// Inputs [k0, k0 + slots) of a row, as far as they exist.
template <typename Source>
void prepare_piece(const DensePrepareArgs& args, const Source* row, int64_t k0, int64_t slots, uint8_t* out) {
  const int64_t count = std::clamp<int64_t>(args.rows.k - k0, 0, slots);
  if (args.permutation == nullptr) return write_piece(args, row + k0, count, slots, out);
  Source gathered[kPiece];
  for (int64_t done = 0; done < slots; done += kPiece) {
    const int64_t piece = std::clamp<int64_t>(count - done, 0, kPiece);
    for (int64_t i = 0; i < piece; ++i) gathered[i] = row[args.permutation[k0 + done + i]];
    write_piece(args, gathered, piece, std::min(kPiece, slots - done), out + done * args.rows.element);
  }
}

template <typename Source>
void prepare_all(const DensePrepareArgs& args, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const Source* x = static_cast<const Source*>(args.x) + row * args.ldx;
    for (int64_t chunk = 0; chunk < args.rows.chunks(); ++chunk) {
      prepare_piece(args, x, chunk * args.rows.chunk, args.rows.chunk, args.out + args.rows.offset(chunk, row));
    }
  }
}

}  // namespace

const DenseRowsKernel dense_rows_portable = {&copy, &widen, &widen_odd_first};

const DenseRowsKernel& dense_rows_kernel(IsaMask isa) {
  if ((kIsaAvx512Tier & ~isa) == 0) return dense_rows_avx512;
  return (kIsaAvx2Tier & ~isa) == 0 ? dense_rows_avx2 : dense_rows_portable;
}

void prepare_dense_rows(const DensePrepareArgs& args, int64_t first, int64_t last) {
  if (args.x_type == OMNI_DTYPE_F32) return prepare_all<float>(args, first, last);
  prepare_all<uint16_t>(args, first, last);
}

}  // namespace okl
