// SPDX-License-Identifier: Apache-2.0
// Checkpoints and configs that are wrong in one place: the line names it.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/linear_source.h"
#include "tests/support/int4_checkpoint.h"
#include "tests/support/temporary_directory.h"

namespace ref {
namespace {

using nlohmann::json;
using omni_files::Int4Module;
using omni_files::SafetensorsWriter;

const json kGptq = json::parse(R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "sym": false})");
const json kAwq = json::parse(R"({"quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": true, "version": "gemm"})");
const json kPacked = json::parse(R"({"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups":
    {"group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "symmetric": false, "strategy": "group", "group_size": 32}}}})");

json with(json config, const char* pointer, const json& value) {
  config[json::json_pointer(pointer)] = value;
  return config;
}

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

void expect_message(const std::string& found, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(found.find(part), std::string::npos) << found << "\nlacks " << part;
  EXPECT_EQ(found.find('\n'), std::string::npos) << found;
}

std::string config_message(const json& quant) {
  return message([&] { read_quant_config({{"quantization_config", quant}}, "config.json"); });
}

// Module m, 16 x 64, in groups of 32.
std::string source_message(const SafetensorsWriter& writer, const json& quant, int64_t n = 16, int64_t k = 64) {
  const omni_files::TemporaryDirectory directory;
  writer.write(directory / "model.safetensors");
  const Checkpoint checkpoint = Checkpoint::open(directory.path());
  return message([&] { find_linear(checkpoint, read_quant_config({{"quantization_config", quant}}, "config.json"), "m", n, k); });
}

const Int4Module& module() {
  static const Int4Module made = Int4Module::varied(16, 64, 32, false);
  return made;
}
SafetensorsWriter gptq() {
  SafetensorsWriter writer;
  add_gptq(&writer, "m", module());
  return writer;
}
SafetensorsWriter awq() {
  SafetensorsWriter writer;
  add_awq(&writer, "m", module());
  return writer;
}
SafetensorsWriter packed() {
  SafetensorsWriter writer;
  add_compressed_tensors(&writer, "m", module());
  return writer;
}

TEST(QuantConfigErrors, NameTheKeyAndTheValue) {
  struct Case {
    json config;
    std::vector<std::string> parts;
  };
  const Case cases[] = {
      {json::array(), {"quantization_config is no object"}},
      {json::object(), {"has no quant_method"}},
      {with(kGptq, "/quant_method", "bitsandbytes"), {"quant_method is \"bitsandbytes\"", "gptq"}},
      {with(kGptq, "/quant_method", 4), {"quant_method is 4"}},
      {with(kGptq, "/bits", 8), {"bits is 8, expected 4"}},
      {with(kGptq, "/bits", "4"), {"bits is \"4\""}},
      {with(kGptq, "/bits", nullptr), {"has no bits"}},
      {with(kGptq, "/group_size", 0), {"group_size is 0"}},
      {with(kGptq, "/group_size", -2), {"group_size is -2"}},
      {with(kGptq, "/group_size", 1e300), {"group_size is 1"}},
      {with(kGptq, "/group_size", 0xFFFFFFFFFFFFFFFFULL), {"group_size is 18446744073709551615"}},
      {with(kGptq, "/group_size", nullptr), {"has no group_size"}},
      {with(kGptq, "/sym", 1), {"sym is 1"}},
      {with(kGptq, "/checkpoint_format", "marlin"), {"checkpoint_format is \"marlin\""}},
      {with(with(kGptq, "/checkpoint_format", "gptq"), "/format", "gptq_v2"), {"format is \"gptq_v2\""}},
      {with(kGptq, "/pack_dtype", "int16"), {"pack_dtype is \"int16\""}},
      {with(kGptq, "/is_marlin_format", true), {"is_marlin_format is true"}},
      {with(kGptq, "/dynamic", "x"), {"dynamic is \"x\""}},
      {with(kGptq, "/dynamic", {{"+:m", 8}}), {"dynamic", "+:m is 8"}},
      {with(kGptq, "/dynamic", {{std::string(5000, 'a'), json::object()}}), {"pattern of 5000 bytes"}},
      {with(kAwq, "/version", "gemv"), {"version is \"gemv\""}},
      {with(kAwq, "/bits", 3), {"bits is 3"}},
      {with(kAwq, "/zero_point", "yes"), {"zero_point is \"yes\""}},
      {with(kPacked, "/format", "int-quantized"), {"format is \"int-quantized\""}},
      {with(kPacked, "/format", nullptr), {"has no format"}},
      {with(kPacked, "/config_groups", nullptr), {"has no config_groups"}},
      {with(kPacked, "/config_groups", json::object()), {"has 0 groups"}},
      {with(kPacked, "/config_groups/group_0/targets", "Linear"), {"group_0", "no list of targets"}},
      {with(kPacked, "/config_groups/group_0/targets", {1}), {"group_0", "no string"}},
      {with(kPacked, "/config_groups/group_0/format", "naive-quantized"), {"group_0", "naive-quantized"}},
      {with(kPacked, "/config_groups/group_0/weights/num_bits", 8), {"group_0: weights", "num_bits is 8"}},
      {with(kPacked, "/config_groups/group_0/weights/type", "float"), {"type is \"float\""}},
      {with(kPacked, "/config_groups/group_0/weights/strategy", "block"), {"strategy is \"block\""}},
      {with(kPacked, "/config_groups/group_0/weights/group_size", nullptr), {"has no group_size"}},
      {with(kPacked, "/config_groups/group_0/weights/dynamic", true), {"dynamic is true"}},
      {with(kPacked, "/config_groups/group_0/weights/actorder", "random"), {"actorder is \"random\""}},
      {with(kPacked, "/transform_config", {{"config_groups", {{"a", 1}}}}), {"transform_config"}},
      {with(kPacked, "/sparsity_config", {{"format", "sparse-24-bitmask"}}), {"sparsity_config", "sparse-24-bitmask"}},
  };
  for (const Case& one : cases) {
    std::vector<std::string> parts = one.parts;
    parts.emplace_back("config.json: quantization_config");
    expect_message(config_message(one.config), parts);
  }
  EXPECT_FALSE(read_quant_config(json::object(), "c").has_value());
  EXPECT_FALSE(read_quant_config({{"quantization_config", nullptr}}, "c").has_value());
}

TEST(QuantConfig, RulesOfModules) {
  const json dynamic =
      json::parse(R"({"-:.*g_proj.*": {}, "+:.*layers\\.1\\.": {"group_size": 128, "sym": true}, ".*lm_head": {"bits": 8}})");
  const auto gptq = read_quant_config({{"quantization_config", with(kGptq, "/dynamic", dynamic)}}, "config.json");
  EXPECT_EQ(gptq->scheme("model.layers.0.x").group, 32);
  EXPECT_EQ(gptq->scheme("model.layers.1.x").group, 128);
  EXPECT_TRUE(gptq->scheme("model.layers.1.x").symmetric);
  expect_message(message([&] { (void)gptq->scheme("lm_head"); }), {"config.json", "\"lm_head\"", "8 bits"});

  const json groups = json::parse(R"({
    "a": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": 128}},
    "b": {"targets": ["re:.*down"], "weights": {"num_bits": 4, "group_size": 32, "symmetric": false}},
    "c": {"targets": ["model.down.0"], "weights": {"num_bits": 4, "group_size": 64, "actorder": "static"}}})");
  const auto packed = read_quant_config({{"quantization_config", with(kPacked, "/config_groups", groups)}}, "config.json");
  EXPECT_EQ(packed->scheme("up").group, 128);
  EXPECT_EQ(packed->scheme("x.down.1").group, 32);
  EXPECT_FALSE(packed->scheme("x.down.1").symmetric);
  EXPECT_EQ(packed->scheme("model.down.0").group, 64);
  EXPECT_FALSE(packed->scheme("model.down.0").act_order);
  // Whatever the order of the groups.
  json turned;
  for (const auto& [from, to] : {std::pair{"c", "0"}, std::pair{"b", "1"}, std::pair{"a", "2"}}) turned[to] = groups[from];
  const auto other = read_quant_config({{"quantization_config", with(kPacked, "/config_groups", turned)}}, "config.json");
  EXPECT_EQ(other->scheme("up").group, 128);
  EXPECT_EQ(other->scheme("x.down.1").group, 32);
  EXPECT_EQ(other->scheme("model.down.0").group, 64);
  // A pattern is matched from the start.
  const json anchored = json::parse(R"({"b": {"targets": ["re:down"], "weights": {"num_bits": 4, "group_size": 32}}})");
  const auto narrow = read_quant_config({{"quantization_config", with(kPacked, "/config_groups", anchored)}}, "config.json");
  EXPECT_EQ(narrow->scheme("down_proj").group, 32);
  expect_message(message([&] { (void)narrow->scheme("x.down"); }), {"config.json", "no config group targets module \"x.down\""});
}

TEST(QuantConfigErrors, PatternsThatDoNotEnd) {
  const auto broken =
      read_quant_config({{"quantization_config", with(kGptq, "/dynamic", {{"+:(", json::object()}})}}, "config.json");
  expect_message(message([&] { (void)broken->scheme("m"); }), {"config.json", "pattern \"(\"", "\"m\""});
  const json slow = {{"+:(a+)+b", json::object()}};
  const auto endless = read_quant_config({{"quantization_config", with(kGptq, "/dynamic", slow)}}, "config.json");
  expect_message(message([&] { (void)endless->scheme(std::string(64, 'a')); }), {"config.json", "(a+)+b", "TIME"});
  const json twice = {{"+:m", {{"group_size", 64}}}, {"+:.*", {{"group_size", 128}}}};
  const auto both = read_quant_config({{"quantization_config", with(kGptq, "/dynamic", twice)}}, "config.json");
  expect_message(message([&] { (void)both->scheme("m"); }), {"config.json", "module \"m\"", "which differ"});
}

TEST(LinearSourceErrors, NameTheTensorWhatWasExpectedAndFound) {
  struct Case {
    SafetensorsWriter writer;
    json config;
    std::vector<std::string> parts;
  };
  const std::vector<uint16_t> halves(32, 0x3C00);
  const Int4Module symmetric = Int4Module::varied(16, 64, 32, true);
  std::vector<uint16_t> infinite = halves;
  infinite[17] = 0x7C00;
  std::vector<int32_t> five(64), order(64);
  for (size_t i = 0; i < 64; ++i) {
    five[i] = i == 5 ? 2 : static_cast<int32_t>(i / 32);
    order[i] = i < 33 ? 0 : 1;
  }
  std::vector<int32_t> negative = five;
  negative[5] = -1;
  SafetensorsWriter both = gptq(), plain;
  both.add("m.weight", "F32", {16, 64}, std::vector<float>(1024));
  plain.add("m.weight", "F64", {16, 64}, std::vector<double>(1024));
  const Case cases[] = {
      {plain, nullptr, {"\"m.weight\"", "F64 [16, 64]", "BF16 or F16 or F32 [16, 64]"}},
      {SafetensorsWriter().add("m.weight", "F32", {64, 16}, std::vector<float>(1024)), nullptr, {"F32 [64, 16]", "[16, 64]"}},
      {SafetensorsWriter().add("x", "F32", {1}, std::vector<float>(1)), kGptq, {"no tensor \"m.weight\""}},
      {gptq(), nullptr, {"\"m.qweight\"", "no quantization_config"}},
      {gptq(), kPacked, {"\"m.qweight\"", "quant_method"}},
      {packed(), kGptq, {"\"m.weight_packed\"", "quant_method"}},
      {packed(), kAwq, {"\"m.weight_packed\"", "quant_method"}},
      {both, kGptq, {"\"m.qweight\"", "twice"}},
      {gptq(), with(kGptq, "/group_size", 48), {"group size 48"}},
      {gptq(), with(kGptq, "/group_size", 64), {"\"m.scales\"", "F16 [2, 16]", "[1, 16]"}},
      {gptq().add("m.qweight", "I32", {8, 15}, std::vector<int32_t>(120)), kGptq, {"\"m.qweight\"", "I32 [8, 15]", "I32 [8, 16]"}},
      {gptq().add("m.qweight", "F32", {8, 16}, std::vector<float>(128)), kGptq, {"\"m.qweight\"", "F32", "I32"}},
      {gptq().remove("m.scales"), kGptq, {"\"m.qweight\"", "no \"m.scales\""}},
      {gptq().add("m.scales", "F16", {2, 16}, infinite), kGptq, {"\"m.scales\"", "not finite", "element 17"}},
      {gptq().add("m.scales", "U8", {2, 16}, std::vector<uint8_t>(32)), kGptq, {"\"m.scales\"", "U8"}},
      {gptq().remove("m.qzeros"), kGptq, {"no \"m.qzeros\""}},
      // Zero points as they are, of the shape and type of the scales (AC-018).
      {gptq().add("m.qzeros", "F16", {2, 16}, halves), kGptq, {"\"m.qzeros\"", "F16 [2, 16]", "expected I32 [2, 2]"}},
      {gptq(), with(kGptq, "/sym", true), {"\"m.qzeros\"", "zero point", "symmetric", "channel 0"}},
      {gptq().add("m.g_idx", "I32", {64}, five), kGptq, {"\"m.g_idx\"", "input 5", "group 2", "0 to 1"}},
      {gptq().add("m.g_idx", "I32", {64}, negative), kGptq, {"\"m.g_idx\"", "input 5", "group -1"}},
      {gptq().add("m.g_idx", "I32", {64}, order), kGptq, {"\"m.g_idx\"", "33 inputs into group 0", "expected 32"}},
      {gptq().add("m.g_idx", "I64", {64}, std::vector<int64_t>(64)), kGptq, {"\"m.g_idx\"", "I64"}},
      {gptq().remove("m.g_idx"), with(kGptq, "/desc_act", true), {"no \"m.g_idx\""}},
      {awq().add("m.qweight", "I32", {8, 16}, std::vector<int32_t>(128)), kAwq, {"\"m.qweight\"", "[8, 16]", "[64, 2]"}},
      {awq().remove("m.qzeros"), kAwq, {"no \"m.qzeros\""}},
      {awq(), with(kAwq, "/zero_point", false), {"\"m.qzeros\"", "symmetric"}},
      {packed().remove("m.weight_shape"), kPacked, {"no \"m.weight_shape\""}},
      {packed().add("m.weight_shape", "I64", {2}, std::vector<int64_t>{64, 16}),
       kPacked,
       {"\"m.weight_shape\"", "[64, 16]", "[16, 64]"}},
      {packed().add("m.weight_shape", "I64", {1}, std::vector<int64_t>{16}), kPacked, {"\"m.weight_shape\"", "I64 [1]"}},
      {packed().add("m.weight_packed", "I32", {16, 9}, std::vector<int32_t>(144)),
       kPacked,
       {"\"m.weight_packed\"", "[16, 9]", "[16, 8]"}},
      {packed().remove("m.weight_zero_point"), kPacked, {"no \"m.weight_zero_point\""}},
      {packed().add("m.weight_zero_point", "I8", {16, 2}, std::vector<int8_t>(32)),
       kPacked,
       {"\"m.weight_zero_point\"", "I8", "I32 [2, 2]"}},
      {packed().remove("m.weight_scale"), kPacked, {"no \"m.weight_scale\""}},
      {packed(), with(kPacked, "/config_groups/group_0/weights/actorder", "group"), {"no \"m.weight_g_idx\""}},
      {packed(), with(kPacked, "/config_groups/group_0/weights/strategy", "channel"), {"\"m.weight_scale\"", "[16, 2]", "[16, 1]"}},
      {packed(), with(kPacked, "/config_groups/group_0/targets", {"q"}), {"config.json", "\"m\""}},
  };
  for (const Case& one : cases) expect_message(source_message(one.writer, one.config), one.parts);
  // The same tensors are fine where nothing is wrong.
  EXPECT_EQ(source_message(gptq(), kGptq), "nothing was thrown");
  EXPECT_EQ(source_message(awq(), kAwq), "nothing was thrown");
  EXPECT_EQ(source_message(packed(), kPacked), "nothing was thrown");
}

// Zero points that all are 8 make a module symmetric, and a symmetric one may come without them.
TEST(LinearSource, SymmetricWithoutZeroPoints) {
  SafetensorsWriter one, two, three;
  const Int4Module symmetric = Int4Module::varied(16, 64, 32, true);
  add_gptq(&one, "m", symmetric);
  add_awq(&two, "m", symmetric);
  EXPECT_EQ(source_message(one.remove("m.qzeros"), with(kGptq, "/sym", true)), "nothing was thrown");
  EXPECT_EQ(source_message(two.remove("m.qzeros"), with(kAwq, "/zero_point", false)), "nothing was thrown");
}

TEST(LinearSourceErrors, ShapesThatAreNoMatrix) {
  expect_message(source_message(gptq(), kGptq, 0, 64), {"m: is [0, 64]"});
  expect_message(source_message(gptq(), kGptq, 16, -1), {"m: is [16, -1]"});
  expect_message(source_message(gptq(), kGptq, std::numeric_limits<int32_t>::max(), 64), {"\"m.qweight\"", "[8, 2147483647]"});
}

}  // namespace
}  // namespace ref
