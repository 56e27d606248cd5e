// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/read_arm.h"

#include <atomic>
#include <chrono>

#include "omni/omni.h"

namespace ref::cli {
namespace {

// Small enough to balance over threads, large enough to stream.
constexpr size_t kPiece = size_t{1} << 20;

// A cache line, in as few loads as the processor has for one: on two cores of Emerald Rapids loads of 16 bytes read 19 to 24 GB/s
// where those of 64 read 26.
typedef uint64_t Vector __attribute__((vector_size(64), aligned(64)));

#if defined(__x86_64__)
#define REF_WIDEST_LOADS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define REF_WIDEST_LOADS
#endif

// Four independent chains hide the latency of the OR; a result that is used keeps the loads alive.
REF_WIDEST_LOADS uint64_t read_piece(const std::byte* bytes, size_t size) {
  const auto* data = reinterpret_cast<const Vector*>(bytes);
  const size_t count = size / sizeof(Vector);
  Vector chains[4] = {};
  for (size_t i = 0; i + 4 <= count; i += 4) {
    for (size_t j = 0; j < 4; ++j) chains[j] |= data[i + j];
  }
  const Vector all = chains[0] | chains[1] | chains[2] | chains[3];
  return all[0] | all[1] | all[2] | all[3] | all[4] | all[5] | all[6] | all[7];
}

struct Task {
  const std::vector<Bytes>& pieces;
  std::atomic<uint64_t> sink{0};
};

}  // namespace

std::vector<Bytes> weight_pieces(const ModelWeights& weights) {
  std::vector<Bytes> pieces;
  const auto cut = [&](Bytes bytes) {
    for (size_t at = 0; at < bytes.size(); at += kPiece) pieces.push_back(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
  };
  for (const auto& [name, matrix] : weights.matrices) {
    cut(matrix.codes);
    cut(matrix.scales);
  }
  return pieces;
}

double read_once(const std::vector<Bytes>& pieces) {
  omni_parallel pool = {};
  pool.size = sizeof pool;
  if (omni_default_parallel(&pool) != OMNI_OK) return 0;
  Task task{pieces};
  const auto start = std::chrono::steady_clock::now();
  pool.parallel_for(
      pool.context, static_cast<int64_t>(pieces.size()),
      [](void* context, int64_t index) {
        auto* self = static_cast<Task*>(context);
        const Bytes piece = self->pieces[static_cast<size_t>(index)];
        self->sink.fetch_or(read_piece(piece.data(), piece.size()), std::memory_order_relaxed);
      },
      &task);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace ref::cli
