// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/generate.h"

#include <fmt/format.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/probe/choices.h"
#include "tools/probe/failure.h"

namespace probe {
namespace {

constexpr int64_t kSide = 64;  // channels of a tg4 block; as many inputs
constexpr uint32_t kSmallGroup = 32;

struct alignas(64) Line {
  uint8_t bytes[64];
};

void check(omni_status status, const char* what) {
  if (status != OMNI_OK)
    throw Failure(Exit::kLibrary, fmt::format("{}: {}: {}", what, omni_status_name(status), omni_last_error()));
}

// The columns of a row that its name holds as a field.
template <typename Value>
Value field_of(const omni_kernel_info& row, std::initializer_list<std::pair<std::string_view, Value>> words, Value otherwise) {
  for (const auto& [word, value] : words) {
    if (std::string_view(row.name).find(fmt::format("_{}_", word)) != std::string_view::npos) return value;
  }
  return otherwise;
}

void generate_linear(const omni_kernel_info& row, const tools::Shape& shape, uint32_t m) {
  const auto numerics = field_of<omni_numerics>(row,
                                                {{"torch", OMNI_NUMERICS_TORCH},
                                                 {"exact", OMNI_NUMERICS_EXACT},
                                                 {"dense", OMNI_NUMERICS_DENSE},
                                                 {"fast", OMNI_NUMERICS_FAST}},
                                                OMNI_NUMERICS_GROUP);
  const auto x_type = field_of<omni_dtype>(row, {{"f32", OMNI_DTYPE_F32}, {"s8", OMNI_DTYPE_S8}}, OMNI_DTYPE_BF16);
  const auto weights = field_of<omni_format>(
      row, {{"w4s", OMNI_FORMAT_W4S}, {"w8s", OMNI_FORMAT_W8S}, {"w16", OMNI_FORMAT_W16}, {"w32", OMNI_FORMAT_W32}},
      OMNI_FORMAT_TG4);
  const Plan plan(shape, m, numerics, x_type, row.name, weights);
  const omni_plan_info info = plan.info();
  if (std::string_view(row.name) != info.kernel && std::string_view(row.name) != info.kernel_rows) {
    throw Failure(Exit::kLibrary, fmt::format("--disassemble {}: the plan chose {}: {}", row.name, info.kernel, info.reason));
  }
}

void generate_pack(const omni_kernel_info& row) {
  const std::vector<Line> source(kSide);
  std::vector<Line> destination(kSide / 2);
  omni_repack_args args{};
  args.size = sizeof args;
  args.source_format = OMNI_FORMAT_CODES_U8;
  args.destination_format = OMNI_FORMAT_TG4;
  args.n = args.k = kSide;
  args.source = source.data();
  args.source_bytes = source.size() * sizeof(Line);
  args.destination = destination.data();
  args.destination_bytes = destination.size() * sizeof(Line);
  check(omni_set_kernel(row.name), "omni_set_kernel");
  const omni_status status = omni_repack(&args);
  const std::string error = omni_last_error();
  omni_set_kernel(nullptr);
  if (status != OMNI_OK) throw Failure(Exit::kLibrary, "omni_repack: " + error);
}

void generate_dequant(const omni_kernel_info& row) {
  const std::vector<Line> codes(kSide / 2), scales(kSide * (kSide / kSmallGroup) * 2 * sizeof(uint16_t) / sizeof(Line));
  std::vector<Line> out(kSide * kSide * sizeof(uint16_t) / sizeof(Line));
  omni_dequant_args args{};
  args.size = sizeof args;
  args.out_type = OMNI_DTYPE_BF16;
  args.order = OMNI_ORDER_NK;
  check(omni_layout_init(&args.layout, OMNI_FORMAT_TG4, kSide, kSide, kSmallGroup, OMNI_DTYPE_BF16), "omni_layout_init");
  args.codes = codes.data();
  args.codes_bytes = codes.size() * sizeof(Line);
  args.scales = scales.data();
  args.scales_bytes = scales.size() * sizeof(Line);
  args.n1 = args.k1 = args.ld_out = kSide;
  args.out = out.data();
  args.kernel = row.name;
  check(omni_dequantize(&args), "omni_dequantize");
}

}  // namespace

void generate(const omni_kernel_info& row, const tools::Shape& shape, uint32_t m) {
  const std::string_view op = row.op;
  if (op == "pack") return generate_pack(row);
  if (op == "dequant") return generate_dequant(row);
  generate_linear(row, shape, m);
}

}  // namespace probe
