// SPDX-License-Identifier: Apache-2.0
#include "bench/operands.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bench/machine.h"

namespace omnibench {

size_t align_to_line(size_t bytes) { return (bytes + 63) / 64 * 64; }

void check(omni_status status, const char* what) {
  if (status != OMNI_OK) throw std::runtime_error(fmt::format("{}: {}: {}", what, omni_status_name(status), omni_last_error()));
}

Block::Block(size_t bytes) {
  memory_.size = sizeof memory_;
  check(omni_packed_alloc(std::max<size_t>(bytes, 1), OMNI_ALLOC_DEFAULT, &memory_), "omni_packed_alloc");
}

Block::~Block() { omni_packed_free(&memory_); }

Block::Block(Block&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(memory_, other.memory_);
  return *this;
}

Pool::Pool(uint32_t threads) {
  check(omni_pool_create(threads, &pool_), "omni_pool_create");
  parallel_.size = sizeof parallel_;
  check(omni_pool_parallel(pool_, &parallel_), "omni_pool_parallel");
}

Pool::~Pool() { omni_pool_destroy(pool_); }

void Pool::run(int64_t count, const std::function<void(int64_t)>& task) const {
  const omni_task call = [](void* context, int64_t index) { (*static_cast<const std::function<void(int64_t)>*>(context))(index); };
  parallel_.parallel_for(parallel_.context, count, call, const_cast<std::function<void(int64_t)>*>(&task));
}

double cold_rotation_bytes() { return 1.25 * static_cast<double>(last_level_cache() + second_level_caches()); }

int64_t copies_for(double moved, double allocated) {
  const double available = 0.5 * static_cast<double>(available_memory());
  if (allocated > available) {
    throw DoesNotFit(
        fmt::format("the operands need {:.1f} GB, half of the available memory is {:.1f} GB", allocated / 1e9, available / 1e9));
  }
  const auto wanted = std::max<int64_t>(2, static_cast<int64_t>(std::ceil(cold_rotation_bytes() / moved)));
  return std::min(wanted, static_cast<int64_t>(available / allocated));
}

Operands::Operands(const Case& c, const Pool& pool)
    : case_(c), pool_(pool), generator_{c.shape.n, c.shape.k, c.group, c.shape.seed}, layout_(c.layout()) {
  check(omni_packed_size(&layout_, &codes_bytes_), "omni_packed_size");
  check(omni_scales_size(&layout_, &scales_bytes_), "omni_scales_size");
  const auto elements = static_cast<size_t>(c.shape.n * c.shape.k);
  const size_t source_bytes = c.op == "pack" ? elements : 0;
  const size_t out_bytes = c.op == "dequant" ? 2 * elements : 0;
  const size_t scales_at = align_to_line(codes_bytes_);
  const size_t source_at = scales_at + align_to_line(scales_bytes_);
  const size_t out_at = source_at + align_to_line(source_bytes);
  const size_t total = out_at + align_to_line(out_bytes);
  const int64_t copies = c.hot ? 1 : copies_for(rotated_bytes(c), static_cast<double>(total));
  // One block for all: a block is at least one 2 MiB page, and a small shape takes 150,000 copies.
  block_ = Block(static_cast<size_t>(copies) * total);
  for (int64_t i = 0; i < copies; ++i) {
    Copy copy;
    copy.codes = block_.data() + static_cast<size_t>(i) * total;
    copy.scales = copy.codes + scales_at;
    copy.source = source_bytes > 0 ? copy.codes + source_at : nullptr;
    copy.out = out_bytes > 0 ? copy.codes + out_at : nullptr;
    copies_.push_back(std::move(copy));
    if (i == 0) {
      fill_first();
      continue;
    }
    std::memcpy(copies_[i].codes, copies_[0].codes, out_at);
    if (out_bytes > 0) std::memset(copies_[i].out, 0, out_bytes);  // touch the pages
  }
  const std::vector<uint16_t> x = generator_.activations(c.m);
  x_ = Block(x.size() * 2);
  std::copy(x.begin(), x.end(), reinterpret_cast<uint16_t*>(x_.data()));
  y_ = Block(static_cast<size_t>(std::max<int64_t>(c.m, 1) * c.shape.n * 2));
  for (Copy& copy : copies_) copy.spans = spans_of(copy);
}

void Operands::fill_first() {
  const Copy& copy = copies_[0];
  const int64_t n = case_.shape.n;
  const int64_t k = case_.shape.k;
  Block scratch;
  uint8_t* codes = copy.source;
  if (codes == nullptr) {
    scratch = Block(static_cast<size_t>(n * k));
    codes = scratch.data();
  }
  constexpr int64_t kRows = 64;
  pool_.run((n + kRows - 1) / kRows, [&](int64_t part) {
    const int64_t n0 = part * kRows;
    generator_.codes(n0, std::min(n, n0 + kRows), codes + n0 * k);
  });
  omni_repack_args args{};
  args.size = sizeof args;
  args.source_format = OMNI_FORMAT_CODES_U8;
  args.destination_format = OMNI_FORMAT_TG4;
  args.n = n;
  args.k = k;
  args.source = codes;
  args.source_bytes = static_cast<size_t>(n * k);
  args.destination = copy.codes;
  args.destination_bytes = codes_bytes_;
  args.parallel = pool_.parallel();
  check(omni_repack(&args), "omni_repack");
  const std::vector<uint16_t> scales = generator_.scales();
  std::memcpy(copy.scales, scales.data(), scales_bytes_);
}

std::string Operands::pages() const {
  switch (block_.pages()) {
    case OMNI_PAGES_TRANSPARENT:
      return "transparent 2 MiB";
    case OMNI_PAGES_EXPLICIT:
      return "explicit 2 MiB";
    case OMNI_PAGES_PLAIN:
      break;
  }
  return "4 KiB";
}

std::vector<Span> Operands::spans_of(const Copy& copy) const {
  std::vector<Span> out = {{copy.codes, codes_bytes_}};
  const auto elements = static_cast<size_t>(case_.shape.n * case_.shape.k);
  if (case_.op != "pack") out.push_back({copy.scales, scales_bytes_});
  if (case_.op == "pack") out.push_back({copy.source, elements});
  if (case_.op == "dequant") out.push_back({copy.out, 2 * elements});
  if (case_.op == "gemv") {
    out.push_back({x_.data(), static_cast<size_t>(case_.m * case_.shape.k * 2)});
    out.push_back({y_.data(), static_cast<size_t>(case_.m * case_.shape.n * 2)});
  }
  return out;
}

}  // namespace omnibench
