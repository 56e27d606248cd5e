// SPDX-License-Identifier: Apache-2.0
// Digest files: {"<shape>": {"N", "K", "group", "seed", "sha256": {"<name>": "<64 digits>", ...}}, ...}. Operands come from the
// generator, results are hashed. When a digest differs, a slow scalar computation of the contract is hashed, too: where that one
// agrees with the file, it tells which element is wrong.
#include <algorithm>
#include <cstring>
#include <set>

#include "bench/generator.h"
#include "bench/golden/checks.h"
#include "bench/golden/sha256.h"
#include "bench/ops/scalar.h"

namespace omnibench {
namespace {

using Json = nlohmann::json;
using Scalar = std::function<std::vector<std::byte>()>;

/// Bits in the order of the tensor that they are of.
template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

/// Compares by digest; a difference becomes one of elements, [rows][width] of `element` bytes, where `scalar` can tell.
void expect_digest(const std::string& expected, std::span<const std::byte> found, int64_t rows, int element, const Scalar& scalar,
                   const std::string& when) {
  const std::string digest = omni_golden::sha256(found);
  if (digest == expected) return;
  const std::vector<std::byte> reference = scalar();
  const bool file_holds = omni_golden::sha256(reference) == expected;
  if (file_holds)
    expect_rows({reference.data(), rows, static_cast<int64_t>(reference.size()) / rows / element, element}, found.data(), rows,
                when);
  const bool same = reference.size() == found.size() && std::memcmp(reference.data(), found.data(), found.size()) == 0;
  throw Differs(fmt::format("SHA-256 expected {}, found {} ({}; the scalar contract {})", expected, digest, when,
                            same ? "agrees with what was found" : "gives a third result"));
}

/// One shape of a digest file.
class DigestsOfShape {
 public:
  DigestsOfShape(const Session& session, std::string name, const Json& entry, bool smallest, const std::string& path,
                 FileRecord* record)
      : session_(session),
        name_(std::move(name)),
        digests_(entry["sha256"]),
        portable_(smallest || session.exhaustive),
        record_(record) {
    const auto number = [&](const char* key, uint64_t most) {
      if (!entry.contains(key) || !entry[key].is_number_unsigned() || entry[key].get<uint64_t>() > most) {
        throw Malformed(fmt::format("{}: \"{}\" has no fitting {}", path, name_, key));
      }
      return entry[key].get<uint64_t>();
    };
    generator_ = {static_cast<int64_t>(number("N", 1U << 24)), static_cast<int64_t>(number("K", 1U << 24)),
                  static_cast<uint32_t>(number("group", 1U << 24)), number("seed", UINT64_MAX)};
    // 2^31 weights are 8 GB of operands and results; N in 16s and K in 32s is what PyTorch packs.
    if (n() < 1 || k() < 1 || generator_.group < 1 || n() % 16 != 0 || k() % 32 != 0 || n() * k() > (int64_t{1} << 31)) {
      throw Malformed(fmt::format("{}: \"{}\" has an impossible shape", path, name_));
    }
    for (const auto& [what, digest] : digests_.items()) {
      if (digest.is_string() ? digest.get<std::string>().size() != 64 : !digest.is_array()) {
        throw Malformed(fmt::format("{}: \"{}\" has no SHA-256 in {}", path, name_, what));
      }
    }
  }

  void check() {
    std::vector<uint8_t> codes(static_cast<size_t>(n() * k()));
    generator_.codes(0, n(), codes.data());
    const std::vector<uint16_t> scales = generator_.scales();
    const std::vector<uint16_t> x = generator_.activations(2);
    check_operands(codes, scales, x);
    const Buffer packed = check_packed(codes);
    codes = {};
    const Buffer scale_bytes{std::span<const uint16_t>(scales)};
    const Weights weights = {tg4_layout(n(), k(), generator_.group, OMNI_DTYPE_BF16), &packed, &scale_bytes};
    check_dequantised(weights);
    check_layers(weights, x);
    for (const auto& [what, digest] : digests_.items()) {
      if (known_.count(what) == 0 && digest.is_string()) record_->add(label(what), "", Outcome::kNotCovered, "unknown digest");
    }
  }

 private:
  [[nodiscard]] int64_t n() const { return generator_.n; }
  [[nodiscard]] int64_t k() const { return generator_.k; }
  [[nodiscard]] std::string label(const std::string& what) const { return name_ + " " + what; }
  /// Whether the file has that digest; it then counts as known.
  bool has(const char* what) {
    known_.insert(what);
    return digests_.contains(what) && digests_[what].is_string();
  }
  [[nodiscard]] std::string digest(const char* what) const { return digests_[what].get<std::string>(); }

  void check_operand(const char* what, std::span<const std::byte> bytes) {
    if (!has(what)) return;
    record_->attempt(label(what), "", [&] {
      if (const std::string found = omni_golden::sha256(bytes); found != digest(what)) {
        throw Differs(fmt::format("SHA-256 expected {}, found {}: the generator made other operands", digest(what), found));
      }
    });
  }

  void check_operands(const std::vector<uint8_t>& codes, const std::vector<uint16_t>& scales, const std::vector<uint16_t>& x) {
    check_operand("codes_u8", std::as_bytes(std::span(codes)));
    check_operand("qscale_zeros_bf16", std::as_bytes(std::span(scales)));
    check_operand("act_m2_bf16", std::as_bytes(std::span(x)));
    for (const char* list : {"first_codes", "out_first8_bits"}) known_.insert(list);  // parts of what the digests say
  }

  bool skip(const Row& row, const char* what) {
    if (row.tier != "portable" || portable_) return false;
    record_->add(label(what), row.name, Outcome::kNotRun, "slow at this size: --exhaustive runs it");
    return true;
  }

  Buffer pack(const std::vector<uint8_t>& codes, omni_format format, const std::string& kernel, const omni::Pool& pool) const {
    Buffer out(static_cast<size_t>(n() * k() / 2));
    auto args = omni::sized<omni_repack_args>();
    args.source_format = OMNI_FORMAT_CODES_U8;
    args.destination_format = static_cast<uint16_t>(format);
    args.n = n();
    args.k = k();
    args.source = codes.data();
    args.source_bytes = codes.size();
    args.destination = out.data();
    args.destination_bytes = out.size();
    args.parallel = pool.parallel();
    repack(args, kernel);
    return out;
  }

  /// PyTorch's packing by its definition: blocks of `width` channels, channel j low and j + width/2 high; where `pairs`, and in a
  /// last block that is not whole, 2j low and 2j+1 high.
  static std::vector<std::byte> scalar_packed(const std::vector<uint8_t>& codes, int64_t n, int64_t k, int64_t width, bool pairs) {
    std::vector<std::byte> out;
    out.reserve(codes.size() / 2);
    for (int64_t block = 0; block < n; block += width) {
      const int64_t channels = std::min(width, n - block);
      const bool adjacent = pairs || channels < width;
      for (int64_t input = 0; input < k; ++input) {
        for (int64_t j = 0; j < channels / 2; ++j) {
          const int64_t low = block + (adjacent ? 2 * j : j), high = adjacent ? low + 1 : low + width / 2;
          out.push_back(static_cast<std::byte>(codes[static_cast<size_t>(low * k + input)] |
                                               codes[static_cast<size_t>(high * k + input)] << 4));
        }
      }
    }
    return out;
  }

  /// Returns tg4.
  Buffer check_packed(const std::vector<uint8_t>& codes) {
    struct Packing {
      const char* what;
      omni_format format;
      int64_t width;
      bool pairs;
    };
    constexpr Packing kPackings[] = {{"packed_avx512", OMNI_FORMAT_TG4, 64, false},
                                     {"packed_avx2", OMNI_FORMAT_TORCH_AVX2, 32, false},
                                     {"packed_default", OMNI_FORMAT_TORCH_DEFAULT, 32, true}};
    for (const Packing& packing : kPackings) {
      if (!has(packing.what)) continue;
      for (const Row& row : rows_of("pack")) {
        // Pack kernels write tg4; the other formats are one code for all of them.
        if (packing.format != OMNI_FORMAT_TG4 && row.tier != rows_of("pack").front().tier) continue;
        if (skip(row, packing.what)) continue;
        record_->attempt(label(packing.what), row.name, [&] {
          require_usable(row);
          for (const auto& pool : session_.pools) {
            const Buffer packed = pack(codes, packing.format, row.name, *pool);
            expect_digest(
                digest(packing.what), packed.bytes(), n(), 1,
                [&] { return scalar_packed(codes, n(), k(), packing.width, packing.pairs); },
                std::to_string(pool->threads()) + " threads");
          }
        });
      }
    }
    return pack(codes, OMNI_FORMAT_TG4, "", session_.first_pool());
  }

  void check_dequantised(const Weights& weights) {
    const char* what = "dequant_bf16";
    if (!has(what)) return;
    const Scalar scalar = [&] {
      std::vector<uint16_t> out;
      out.reserve(static_cast<size_t>(n() * k()));
      for (int64_t channel = 0; channel < n(); ++channel) {
        for (int64_t input = 0; input < k(); ++input) out.push_back(scalar_dequant(generator_, channel, input));
      }
      return bytes_of(out);
    };
    Buffer out(static_cast<size_t>(n() * k() * 2));
    for (const Row& row : rows_of("dequant")) {
      if (skip(row, what)) continue;
      record_->attempt(label(what), row.name, [&] {
        require_usable(row);
        for (const auto& pool : session_.pools) {
          dequantize(weights, OMNI_ORDER_NK, row.name, *pool, &out);
          expect_digest(digest(what), out.bytes(), n(), 2, scalar, std::to_string(pool->threads()) + " threads");
        }
      });
    }
  }

  /// Rows 0 and 1 by the contract, stored as y_type.
  std::vector<std::byte> scalar_rows(const LinearProblem& problem, int64_t rows) const {
    const auto* x = reinterpret_cast<const uint16_t*>(problem.x.data());
    std::vector<float> wide;
    std::vector<uint16_t> narrow;
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t channel = 0; channel < n(); ++channel) {
        wide.push_back(scalar_gemv(generator_, problem.numerics, x + row * k(), channel));
        narrow.push_back(float_to_bf16(wide.back()));
      }
    }
    return problem.y_type == OMNI_DTYPE_F32 ? bytes_of(wide) : bytes_of(narrow);
  }

  void check_layer(const LinearProblem& problem, const char* one_row, const char* two_rows) {
    const int element = problem.y_type == OMNI_DTYPE_F32 ? 4 : 2;
    const auto row_bytes = static_cast<size_t>(n() * element);
    const bool has_one = one_row != nullptr && has(one_row), has_two = has(two_rows);
    if (!has_one && !has_two) return;
    // Rows whose digests have been found right; other kernels are then compared with them, element by element.
    std::vector<std::byte> golden;
    const GoldenSource source = [&](const std::byte* first) {
      if (golden.empty()) {
        const std::span<const std::byte> rows(first, 2 * row_bytes);
        if (has_one) {
          expect_digest(
              digest(one_row), rows.first(row_bytes), 1, element, [&] { return scalar_rows(problem, 1); }, "M = 1");
        }
        if (has_two)
          expect_digest(
              digest(two_rows), rows, 2, element, [&] { return scalar_rows(problem, 2); }, "M = 1, twice");
        golden.assign(rows.begin(), rows.end());
      }
      return GoldenRows{golden.data(), 2, n(), element};
    };
    const LinearRange range = {session_.exhaustive ? every_m() : std::vector<uint32_t>{1, 2, 5}, portable_};
    const std::string what = has_one && has_two ? fmt::format("{} and {}", one_row, two_rows) : (has_one ? one_row : two_rows);
    check_linear(session_, problem, range, label(what), source, record_);
  }

  void check_layers(const Weights& weights, const std::vector<uint16_t>& x) {
    LinearProblem problem;
    problem.weights = weights;
    problem.x = bytes_of(x);
    problem.rows = 2;
    check_layer(problem, "out_group_m1_f32", "out_group_m2_f32");
    problem.y_type = OMNI_DTYPE_BF16;
    check_layer(problem, nullptr, "out_group_m2_bf16");
    problem.numerics = OMNI_NUMERICS_TORCH;
    check_layer(problem, "out_m1_bf16", "out_m2_bf16");
  }

  const Session& session_;
  std::string name_;
  const Json& digests_;
  bool portable_;
  FileRecord* record_;
  Generator generator_;
  std::set<std::string> known_;
};

}  // namespace

void check_digests(const Session& session, const std::string& path, const Json& digests, FileRecord* record) {
  const auto weights = [](const Json& entry) {
    const auto number = [&](const char* key) {
      return entry.contains(key) && entry[key].is_number() ? entry[key].get<double>() : 0;
    };
    return number("N") * number("K");
  };
  double least = -1;
  for (const auto& [name, entry] : digests.items()) {
    if (!entry.is_object() || !entry.contains("sha256") || !entry["sha256"].is_object()) {
      throw Malformed(fmt::format("{}: \"{}\" has no \"sha256\"", path, name));
    }
    if (least < 0 || weights(entry) < least) least = weights(entry);
  }
  for (const auto& [name, entry] : digests.items()) {
    DigestsOfShape(session, name, entry, weights(entry) == least, path, record).check();
  }
}

}  // namespace omnibench
