// SPDX-License-Identifier: Apache-2.0
// Every row of the registry: its name says what the row says, and nothing stands alone.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <tuple>

#include "kernels/cpu/isa.h"
#include "kernels/dispatch/kernel.h"
#include "kernels/format/format.h"

namespace okl {
namespace {

std::string activation_word(omni_dtype type) {
  switch (type) {
    case OMNI_DTYPE_NONE:
      return "";
    case OMNI_DTYPE_F32:
      return "f32";
    case OMNI_DTYPE_BF16:
      return "bf16";
    case OMNI_DTYPE_S8:
      return "s8";
    default:
      return "?";
  }
}

std::string format_word(omni_format format) {
  if (format == OMNI_FORMAT_NONE) return "";
  const std::string_view word = format_name(format);
  return word.empty() ? "?" : std::string(word);
}

// <op>_<class>_<activation>_<weight format>_<MRxNR>_<isa>, absent fields left out.
std::string name_by_grammar(const KernelRow& row) {
  std::string name(op_name(row.op));
  const std::string tile = row.mr == 0 ? "" : std::to_string(row.mr) + "x" + std::to_string(row.nr);
  for (const std::string& field : {std::string(numerics_name(row.numerics)), activation_word(row.activation),
                                   format_word(row.weights), tile, std::string(row.isa)}) {
    if (!field.empty()) name += "_" + field;
  }
  return name;
}

TEST(Registry, HasRows) { EXPECT_GE(registry().size(), 4U); }

TEST(Registry, NameIsTheGrammarAppliedToTheRow) {
  for (const KernelRow& row : registry()) EXPECT_EQ(row.name, name_by_grammar(row));
}

TEST(Registry, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const KernelRow& row : registry()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
    EXPECT_EQ(find_kernel(row.name), &row);
  }
  EXPECT_EQ(find_kernel(""), nullptr);
  EXPECT_EQ(find_kernel("gemv"), nullptr);
}

// Compiled copies of the portable loops are named after the family that they are compiled for.
std::string_view tier_of_word(std::string_view word) {
  if (word == "twinavx2") return "avx2";
  if (word == "twinavx512") return "avx512f";
  return word;
}

bool is_elementwise(Op op) {
  return op == Op::kQuantize || op == Op::kGather || op == Op::kRmsnorm || op == Op::kHeadgate || op == Op::kGeglu ||
         op == Op::kRope || op == Op::kAttention || op == Op::kSwiglu || op == Op::kHeadnorm || op == Op::kDepthwise ||
         op == Op::kLayernorm || op == Op::kActivation;
}

bool is_linear(Op op) { return op == Op::kGemv || op == Op::kGemm || op == Op::kConv1d; }

// A cap by tier name must let exactly the kernels named after that tier and lesser ones pass.
TEST(Registry, IsaWordIsTheLeastTierThatAllowsTheRequiredBits) {
  for (const KernelRow& row : registry()) {
    const auto least = std::ranges::find_if(tiers(), [&](const Tier& tier) { return (row.required & ~tier.allowed) == 0; });
    ASSERT_NE(least, tiers().end()) << row.name << ": no tier allows " << isa_to_text(row.required);
    EXPECT_EQ(tier_of_word(row.isa), least->name) << row.name << " requires " << isa_to_text(row.required);
    const bool compiled_word = row.isa == "portable" || row.isa.starts_with("twin");
    // Element-wise and attention kernels are leaf files in intrinsics: compiled, under the tier's own name.
    EXPECT_EQ(row.code == Code::kCompiled, compiled_word || is_elementwise(row.op)) << row.name;
  }
}

TEST(Registry, TileHasBothSidesOrNone) {
  for (const KernelRow& row : registry()) {
    EXPECT_EQ(row.mr == 0, row.nr == 0) << row.name;
    if (is_linear(row.op)) {
      EXPECT_GE(row.mr, 1) << row.name;
      EXPECT_EQ(row.nr % 16, 0) << row.name << ": channels come in blocks of 16 or more";
    }
  }
}

TEST(Registry, LinearRowsHaveAClassAndAnActivationOthersNone) {
  for (const KernelRow& row : registry()) {
    const bool linear = is_linear(row.op);
    EXPECT_EQ(row.numerics != Numerics::kNone, linear) << row.name;
    // Of an attention kernel it is the type of the cache.
    EXPECT_EQ(row.activation != OMNI_DTYPE_NONE, linear || row.op == Op::kAttention) << row.name;
    EXPECT_EQ(row.weights == OMNI_FORMAT_NONE, is_elementwise(row.op)) << row.name;
  }
}

TEST(Registry, EveryRowHasAnImplementationAndASummaryOfOneLine) {
  for (const KernelRow& row : registry()) {
    EXPECT_NE(row.implementation, nullptr) << row.name;
    EXPECT_FALSE(row.summary.empty()) << row.name;
    EXPECT_EQ(row.summary.find('\n'), std::string_view::npos) << row.name;
  }
}

// Nobody has run the AMX rows on a processor with AMX: whoever lists them is told. The remark goes when somebody has.
TEST(Registry, AmxRowsSayThatTheyWereNotTimed) {
  for (const KernelRow& row : registry()) {
    EXPECT_EQ(row.summary.ends_with("; not timed on hardware"), (row.required & kIsaAmxBits) != 0) << row.name;
  }
}

// What a row computes. GEMV and GEMM are one operation with tiles for one row and for many.
auto answer_of(const KernelRow& row) {
  return std::tuple(row.op == Op::kGemv ? Op::kGemm : row.op, row.numerics, row.activation, row.weights);
}

// Class fast promises no bits: where it cannot run, class group or dense serves (fast_plan.h).
bool has_substitute(const KernelRow& row) { return row.numerics == Numerics::kFast; }

// A portable row for everything: it is the reference of the others and what serves where they cannot.
TEST(Registry, EveryKernelHasAPortableTwinAfterIt) {
  for (const KernelRow& row : registry()) {
    if (has_substitute(row)) continue;
    const auto twin = std::ranges::find_if(registry(), [&](const KernelRow& other) {
      return answer_of(other) == answer_of(row) && other.required == 0 && other.code == Code::kCompiled;
    });
    ASSERT_NE(twin, registry().end()) << row.name << " has no portable twin";
    EXPECT_GE(&*twin, &row) << row.name << " stands after " << twin->name << " and would never be chosen";
  }
}

// Where executable memory is refused a compiled row serves, and should not fall all the way to the portable tier.
TEST(Registry, EveryGeneratedKernelHasACompiledOneOfItsFamilyAfterIt) {
  for (const KernelRow& row : registry()) {
    if (row.code != Code::kJit || has_substitute(row)) continue;
    const auto twin = std::ranges::find_if(registry(), [&](const KernelRow& other) {
      return answer_of(other) == answer_of(row) && other.code == Code::kCompiled && (other.required & OMNI_ISA_AVX2) != 0 &&
             (other.required & ~row.required) == 0;
    });
    ASSERT_NE(twin, registry().end()) << row.name << " has no compiled twin";
    EXPECT_GE(&*twin, &row) << row.name << " stands after " << twin->name << " and would never be chosen";
  }
}

TEST(Registry, GeneratedCodeNeedsAnIsa) {
  for (const KernelRow& row : registry()) {
    if (row.code == Code::kJit) {
      EXPECT_GE(std::popcount(row.required), 1) << row.name;
    }
  }
}

}  // namespace
}  // namespace okl
