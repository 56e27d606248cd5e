// SPDX-License-Identifier: Apache-2.0
// Checks of the head gate's query, and its packed weights.
#include "kernels/headgate/headgate_pack.h"

#include <algorithm>
#include <cstring>

#include "kernels/api/row_plan.h"

namespace okl {

omni_status check_headgate_query(const omni_headgate_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_headgate_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!is_float_type(query.weight_type)) return fail(OMNI_ERR_TYPE, "weight_type %u is neither bf16 nor f32", query.weight_type);
  const bool gates_only = query.value_type == OMNI_DTYPE_NONE;
  if (!gates_only && !is_float_type(query.value_type)) {
    return fail(OMNI_ERR_TYPE, "value_type %u is not bf16, f32 or none", query.value_type);
  }
  if (query.activation > OMNI_HEADGATE_SILU) return fail(OMNI_ERR_TYPE, "activation %u is unknown", query.activation);
  if (query.heads < 1 || query.heads > OMNI_HEADGATE_MOST_HEADS) {
    return fail(OMNI_ERR_SHAPE, "heads is %u, must be in 1..%u", query.heads, OMNI_HEADGATE_MOST_HEADS);
  }
  if (query.k < 1) return fail(OMNI_ERR_SHAPE, "k is %lld", static_cast<long long>(query.k));
  if (gates_only ? query.head_dim != 0 : query.head_dim < 1) {
    return fail(OMNI_ERR_SHAPE, "head_dim %lld does not go with value_type %u", static_cast<long long>(query.head_dim),
                query.value_type);
  }
  int64_t unused = 0;
  if (!headgate_packed_bytes(query, &unused) || !checked_product({query.heads, query.head_dim, 4}, &unused)) {
    return fail(OMNI_ERR_OVERFLOW, "k = %lld or head_dim = %lld times %u heads does not fit", static_cast<long long>(query.k),
                static_cast<long long>(query.head_dim), query.heads);
  }
  return OMNI_OK;
}

HeadgateConfig headgate_config(const omni_headgate_query& query) {
  return {query.x_type, query.weight_type, query.value_type, query.activation};
}

bool headgate_packed_bytes(const omni_headgate_query& query, int64_t* bytes) {
  const auto element = static_cast<int64_t>(type_bytes(query.weight_type));
  if (headgate_config(query).pairs()) {
    return checked_product({ceil_div(query.k, kGateStep), query.heads, kGateStep, element}, bytes);
  }
  return checked_product({ceil_div(query.heads, kGateLanes), query.k, kGateLanes, element}, bytes);
}

namespace {

void pack_pairs(const omni_headgate_query& query, const uint16_t* weights, int64_t ld, uint16_t* packed) {
  for (int64_t block = 0; block < query.heads; block += kGateBlock) {
    const int64_t heads = std::min<int64_t>(query.heads - block, kGateBlock);
    for (int64_t k = 0; k < query.k; k += kGateStep) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < kGateStep; ++i, ++packed) {
          const uint16_t weight = k + i < query.k ? weights[(block + h) * ld + k + i] : uint16_t{0};
          *packed = (weight & 0x7FFF) < kGateLeast ? uint16_t{0} : weight;
        }
      }
    }
  }
}

template <typename Weight>
void pack_chain(const omni_headgate_query& query, const Weight* weights, int64_t ld, Weight* packed) {
  for (int64_t block = 0; block < query.heads; block += kGateLanes) {
    for (int64_t k = 0; k < query.k; ++k) {
      for (int64_t lane = 0; lane < kGateLanes; ++lane, ++packed) {
        *packed = block + lane < query.heads ? weights[(block + lane) * ld + k] : Weight{0};
      }
    }
  }
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_headgate_packed_size(const omni_headgate_query* query, size_t* bytes) {
  if (query == nullptr || bytes == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "bytes");
  if (omni_status status = check_headgate_query(*query); status != OMNI_OK) return status;
  int64_t needed = 0;
  (void)headgate_packed_bytes(*query, &needed);  // checked
  *bytes = static_cast<size_t>(needed);
  return succeed();
}

omni_status omni_headgate_pack(const omni_headgate_query* query, const void* weights, int64_t ld, void* packed,
                               size_t packed_bytes) {
  size_t needed = 0;
  if (omni_status status = omni_headgate_packed_size(query, &needed); status != OMNI_OK) return status;
  omni_status status = check_rows("weights", weights, query->weight_type, query->heads, query->k, ld);
  if (status == OMNI_OK) status = check_array("packed", packed, 64);
  if (status != OMNI_OK) return status;
  if (packed_bytes < needed) return fail(OMNI_ERR_BUFFER_SIZE, "packed_bytes is %zu, needs %zu", packed_bytes, needed);
  if (headgate_config(*query).pairs()) {
    pack_pairs(*query, static_cast<const uint16_t*>(weights), ld, static_cast<uint16_t*>(packed));
  } else if (query->weight_type == OMNI_DTYPE_BF16) {
    pack_chain(*query, static_cast<const uint16_t*>(weights), ld, static_cast<uint16_t*>(packed));
  } else {
    pack_chain(*query, static_cast<const float*>(weights), ld, static_cast<float*>(packed));
  }
  return succeed();
}

}  // extern "C"
