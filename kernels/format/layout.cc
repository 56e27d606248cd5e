// SPDX-License-Identifier: Apache-2.0
#include "omni/layout.h"

#include "kernels/api/error.h"
#include "kernels/format/blocks64.h"
#include "kernels/format/checked.h"
#include "kernels/format/format.h"
#include "kernels/format/tg4.h"
#include "kernels/format/vllm_w4a8.h"

namespace okl {
namespace {

struct FormatFacts {
  omni_format format;
  std::string_view name;
  bool blocked;
  uint8_t element;  // bytes
};

constexpr FormatFacts formats[] = {
    {OMNI_FORMAT_TG4, "tg4", true, 1},
    {OMNI_FORMAT_W4S, "w4s", true, 1},
    {OMNI_FORMAT_W8S, "w8s", true, 1},
    {OMNI_FORMAT_W16, "w16", true, 1},
    {OMNI_FORMAT_W32, "w32", true, 1},
    {OMNI_FORMAT_TORCH_AVX2, "torch_avx2", true, 1},
    {OMNI_FORMAT_TORCH_DEFAULT, "torch_default", true, 1},
    {OMNI_FORMAT_CODES_U8, "codes_u8", false, 1},
    {OMNI_FORMAT_CODES_I32, "codes_i32", false, 4},
    {OMNI_FORMAT_ROW_PAIRS, "row_pairs", false, 1},
    {OMNI_FORMAT_ROW_HALVES, "row_halves", false, 1},
    {OMNI_FORMAT_GPTQ, "gptq", false, 4},
    {OMNI_FORMAT_AWQ, "awq", false, 4},
    {OMNI_FORMAT_CT_PACKED, "ct_packed", false, 4},
    {OMNI_FORMAT_VLLM_W4A8, "vllm_w4a8", true, 1},
    {OMNI_FORMAT_CODES_S8, "codes_s8", false, 1},
};

const FormatFacts* facts(omni_format format) {
  for (const FormatFacts& entry : formats) {
    if (entry.format == format) return &entry;
  }
  return nullptr;
}

// Blocks of the library's own formats; nullptr for tg4, PyTorch's and row-major ones.
const Blocks64* own_blocks(omni_format format) {
  switch (format) {
    case OMNI_FORMAT_W4S:
      return &kW4s;
    case OMNI_FORMAT_W8S:
      return &kW8s;
    case OMNI_FORMAT_W16:
      return &kW16;
    case OMNI_FORMAT_W32:
      return &kW32;
    default:
      return nullptr;
  }
}

bool has_scales(uint16_t format) { return format != OMNI_FORMAT_W16 && format != OMNI_FORMAT_W32; }

// Flags that are the caller's choice.
uint16_t optional_flags(uint16_t format) {
  if (format == OMNI_FORMAT_W4S) return OMNI_LAYOUT_ZEROS;
  if (format == OMNI_FORMAT_W16) return OMNI_LAYOUT_SCRUBBED;
  return 0;
}

uint16_t expected_flags(const omni_layout& layout) {
  uint16_t flags = 0;
  const auto format = static_cast<omni_format>(layout.format);
  const Blocks64* own = own_blocks(format);
  if (is_blocked(format) && layout.n % (own == nullptr ? tg4::kChannelStep : own->channel_step) != 0) flags |= OMNI_LAYOUT_PADDED_N;
  if (layout.k % layout.group != 0) flags |= OMNI_LAYOUT_SHORT_GROUP;
  return flags;
}

int64_t scale_element(uint16_t scale_type) { return scale_type == OMNI_DTYPE_BF16 ? 2 : 4; }

bool packed_bytes_of(const omni_layout& layout, int64_t* bytes) {
  if (layout.format == OMNI_FORMAT_VLLM_W4A8) return vllm_w4a8_bytes(layout.n, layout.k, layout.group, bytes);
  return codes_bytes(static_cast<omni_format>(layout.format), layout.n, layout.k, 0, bytes);
}

// Everything but size, version and flags.
omni_status check_fields(const omni_layout& layout, const char* what) {
  if (!is_format(layout.format)) return fail(OMNI_ERR_LAYOUT, "%s: format %u is unknown", what, layout.format);
  if (!has_scales(layout.format)) {
    if (layout.scale_type != OMNI_DTYPE_NONE) {
      return fail(OMNI_ERR_TYPE, "%s: scale_type is %u, but %s has no scales", what, layout.scale_type,
                  format_name(static_cast<omni_format>(layout.format)).data());
    }
  } else if (layout.scale_type != OMNI_DTYPE_BF16 && layout.scale_type != OMNI_DTYPE_F32) {
    return fail(OMNI_ERR_TYPE, "%s: scale_type %u is neither bf16 nor f32", what, layout.scale_type);
  }
  if (layout.n < 0) return fail(OMNI_ERR_SHAPE, "%s: n is %lld", what, static_cast<long long>(layout.n));
  if (layout.k < 1) return fail(OMNI_ERR_SHAPE, "%s: k is %lld", what, static_cast<long long>(layout.k));
  if (!is_group(layout.group, layout.k)) {
    return fail(OMNI_ERR_GROUP, "%s: group %u is not 32, 64, 128, 256 or k = %lld", what, layout.group,
                static_cast<long long>(layout.k));
  }
  if (layout.format == OMNI_FORMAT_VLLM_W4A8 && !vllm::serves(layout.n, layout.k, layout.group)) {
    return fail(OMNI_ERR_SHAPE,
                "%s: vLLM's blocks need n %% 32 == 0 and k %% min(group, 128) == 0, not n = %lld, k = %lld, group %u", what,
                static_cast<long long>(layout.n), static_cast<long long>(layout.k), layout.group);
  }
  int64_t bytes;
  if (!packed_bytes_of(layout, &bytes) || !layout_scales_bytes(layout, &bytes)) {
    return fail(OMNI_ERR_OVERFLOW, "%s: n = %lld times k = %lld does not fit", what, static_cast<long long>(layout.n),
                static_cast<long long>(layout.k));
  }
  return OMNI_OK;
}

}  // namespace

std::string_view format_name(omni_format format) {
  const FormatFacts* entry = facts(format);
  return entry == nullptr ? std::string_view() : entry->name;
}

bool is_format(uint32_t value) { return facts(static_cast<omni_format>(value)) != nullptr; }

bool is_blocked(omni_format format) {
  const FormatFacts* entry = facts(format);
  return entry != nullptr && entry->blocked;
}

uint16_t format_version(omni_format) { return tg4::kVersion; }

int64_t element_bytes(omni_format format) {
  const FormatFacts* entry = facts(format);
  return entry == nullptr ? 0 : entry->element;
}

int64_t dense_ld(omni_format format, int64_t n, int64_t k) {
  switch (format) {
    case OMNI_FORMAT_CODES_U8:
    case OMNI_FORMAT_CODES_S8:
    case OMNI_FORMAT_CODES_I32:
      return k;
    case OMNI_FORMAT_ROW_PAIRS:
    case OMNI_FORMAT_ROW_HALVES:
      return ceil_div(k, 2);
    case OMNI_FORMAT_GPTQ:
      return n;
    case OMNI_FORMAT_AWQ:
      return ceil_div(n, 8);
    case OMNI_FORMAT_CT_PACKED:
      return ceil_div(k, 8);
    default:
      return 0;
  }
}

int64_t storage_rows(omni_format format, int64_t n, int64_t k) {
  switch (format) {
    case OMNI_FORMAT_GPTQ:
      return ceil_div(k, 8);
    case OMNI_FORMAT_AWQ:
      return k;
    default:
      return is_blocked(format) ? 0 : n;
  }
}

bool codes_bytes(omni_format format, int64_t n, int64_t k, int64_t ld, int64_t* bytes) {
  if (const Blocks64* own = own_blocks(format); own != nullptr) {
    if (n > INT64_MAX - Blocks64::kBlock || k > INT64_MAX - Blocks64::kBlock) return false;
    int64_t twice;
    if (!checked_product({own->padded_n(n), own->padded_k(k), own->bytes_per_two}, &twice)) return false;
    *bytes = twice / 2;
    return true;
  }
  if (is_blocked(format)) {
    // Rounding up n or k is the first thing that could overflow.
    if (n > INT64_MAX - tg4::kChannelStep || k > INT64_MAX - tg4::kInputStep) return false;
    const int64_t rows = format == OMNI_FORMAT_TG4 ? tg4::padded_k(k) : k;
    return checked_product({tg4::padded_n(n) / 2, rows}, bytes);
  }
  const int64_t width = dense_ld(format, n, k), rows = storage_rows(format, n, k), element = element_bytes(format);
  if (rows == 0 || width == 0) {
    *bytes = 0;
    return true;
  }
  int64_t before, elements;
  return checked_product({rows - 1, ld == 0 ? width : ld}, &before) && checked_sum(before, width, &elements) &&
         checked_product({elements, element}, bytes);
}

bool scales_bytes(int64_t n, int64_t k, int64_t group, int64_t element, int64_t* bytes) {
  return checked_product({ceil_div(k, group), n, 2, element}, bytes);
}

bool layout_scales_bytes(const omni_layout& layout, int64_t* bytes) {
  if (!has_scales(layout.format)) {
    *bytes = 0;
    return true;
  }
  const int64_t groups = ceil_div(layout.k, int64_t{layout.group}), element = scale_element(layout.scale_type);
  if (own_blocks(static_cast<omni_format>(layout.format)) == nullptr) {
    return scales_bytes(layout.n, layout.k, layout.group, element, bytes);
  }
  return checked_product({groups, layout.n, element + ((layout.flags & OMNI_LAYOUT_ZEROS) != 0 ? 1 : 0)}, bytes);
}

bool vllm_w4a8_bytes(int64_t n, int64_t k, int64_t group, int64_t* bytes) {
  const int64_t inputs = vllm::block_inputs(group);
  return checked_product({n / vllm::kBlockChannels, k / inputs, vllm::block_bytes(inputs)}, bytes);
}

bool is_group(int64_t group, int64_t k) {
  return group == 32 || group == 64 || group == 128 || group == 256 || (group == k && k > 0);
}

omni_status check_layout(const omni_layout& layout, const char* what) {
  if (layout.size < sizeof(omni_layout))
    return fail(OMNI_ERR_STRUCT_SIZE, "%s: size %u is below %zu", what, layout.size, sizeof layout);
  if (const omni_status status = check_fields(layout, what); status != OMNI_OK) return status;
  if (layout.version != format_version(static_cast<omni_format>(layout.format))) {
    return fail(OMNI_ERR_LAYOUT, "%s: version %u of %s is unknown", what, layout.version,
                format_name(static_cast<omni_format>(layout.format)).data());
  }
  if ((layout.flags & ~optional_flags(layout.format)) != expected_flags(layout)) {
    return fail(OMNI_ERR_LAYOUT, "%s: flags are %u and should be %u", what, layout.flags, expected_flags(layout));
  }
  return OMNI_OK;
}

}  // namespace okl

extern "C" {

omni_status omni_layout_init(omni_layout* out, omni_format format, int64_t n, int64_t k, uint32_t group, omni_dtype scale_type) {
  if (out == nullptr) return okl::fail(OMNI_ERR_NULL, "out is NULL");
  omni_layout layout = {};
  layout.size = sizeof layout;
  layout.format = static_cast<uint16_t>(format);
  layout.version = okl::format_version(format);
  layout.scale_type = static_cast<uint16_t>(scale_type);
  layout.group = group;
  layout.n = n;
  layout.k = k;
  if (const omni_status status = okl::check_fields(layout, "layout"); status != OMNI_OK) return status;
  layout.flags = okl::expected_flags(layout);
  *out = layout;
  return okl::succeed();
}

omni_status omni_layout_check(const omni_layout* layout) {
  if (layout == nullptr) return okl::fail(OMNI_ERR_NULL, "layout is NULL");
  const omni_status status = okl::check_layout(*layout, "layout");
  return status == OMNI_OK ? okl::succeed() : status;
}

omni_status omni_packed_size(const omni_layout* layout, size_t* bytes) {
  if (layout == nullptr || bytes == nullptr) return okl::fail(OMNI_ERR_NULL, "%s is NULL", layout == nullptr ? "layout" : "bytes");
  if (const omni_status status = okl::check_layout(*layout, "layout"); status != OMNI_OK) return status;
  int64_t size = 0;
  if (!okl::packed_bytes_of(*layout, &size)) {
    return okl::fail(OMNI_ERR_OVERFLOW, "packed size does not fit");
  }
  *bytes = static_cast<size_t>(size);
  return okl::succeed();
}

omni_status omni_scales_size(const omni_layout* layout, size_t* bytes) {
  if (layout == nullptr || bytes == nullptr) return okl::fail(OMNI_ERR_NULL, "%s is NULL", layout == nullptr ? "layout" : "bytes");
  if (const omni_status status = okl::check_layout(*layout, "layout"); status != OMNI_OK) return status;
  int64_t size = 0;
  if (!okl::layout_scales_bytes(*layout, &size)) {
    return okl::fail(OMNI_ERR_OVERFLOW, "size of scales does not fit");
  }
  *bytes = static_cast<size_t>(size);
  return okl::succeed();
}

}  // extern "C"
