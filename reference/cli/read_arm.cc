// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/read_arm.h"

#include <atomic>
#include <chrono>

#include "omni/omni.h"

namespace ref::cli {
namespace {

// Small enough to balance over threads, large enough to stream.
constexpr size_t kPiece = size_t{1} << 20;

// Sixteen bytes: what every x86-64 and AArch64 processor loads at once; two loads a cycle are far above any memory.
typedef uint64_t Vector __attribute__((vector_size(16), aligned(16)));

// Eight independent chains hide the latency of the OR; a result that is used keeps the loads alive.
uint64_t read_piece(Bytes bytes) {
  const auto* data = reinterpret_cast<const Vector*>(bytes.data());
  const size_t count = bytes.size() / sizeof(Vector);
  Vector chains[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) chains[j] |= data[i + j];
  }
  Vector all = {};
  for (const Vector& chain : chains) all |= chain;
  return all[0] | all[1];
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
        self->sink.fetch_or(read_piece(self->pieces[static_cast<size_t>(index)]), std::memory_order_relaxed);
      },
      &task);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace ref::cli
