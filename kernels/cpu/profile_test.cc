// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/profile.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "kernels/cpu/machine.h"
#include "omni/omni.h"

namespace okl {
namespace {

using Json = nlohmann::ordered_json;

omni_machine sample() {
  omni_machine machine{};
  machine.size = sizeof machine;
  machine.isa_hardware = OMNI_ISA_AVX2 | OMNI_ISA_FMA | OMNI_ISA_AVX512F | OMNI_ISA_AVX512BF16;
  machine.isa = OMNI_ISA_AVX2 | OMNI_ISA_FMA;
  machine.traits = OMNI_TRAIT_SLOW_BF16_DOT;
  machine.cores_online = 96;
  machine.cores_usable = 48;
  machine.l1d_bytes = 48 << 10;
  machine.l2_bytes = 2 << 20;
  machine.l3_bytes = uint64_t{5} << 30;
  std::strcpy(machine.vendor, "GenuineIntel");
  std::strcpy(machine.name, "a \"quoted\" name");
  std::strcpy(machine.amx_reason, "because");
  return machine;
}

std::string refused(const Json& json) {
  std::string error;
  EXPECT_FALSE(profile_from_json(json.dump(), &error)) << json.dump();
  return error;
}

void expect_refusal(const Json& json, const std::string& key) {
  const std::string error = refused(json);
  EXPECT_NE(error.find("\"" + key + "\""), std::string::npos) << error;
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

TEST(Profile, RoundTrip) {
  std::string error;
  const omni_machine before = sample();
  const std::optional<omni_machine> after = profile_from_json(profile_to_json(before), &error);
  ASSERT_TRUE(after) << error;
  EXPECT_EQ(std::memcmp(&before, &*after, sizeof before), 0) << profile_to_json(*after);
}

TEST(Profile, EveryKeyIsNeededAndNoOther) {
  const Json good = Json::parse(profile_to_json(sample()));
  for (const auto& item : good["machine"].items()) {
    Json missing = good;
    missing["machine"].erase(item.key());
    expect_refusal(missing, item.key());
    Json wrong = good;
    wrong["machine"][item.key()] = item.value().is_boolean() ? Json(1) : Json(true);
    expect_refusal(wrong, item.key());
  }
  for (const char* key : {"omni_profile", "machine"}) {
    Json missing = good;
    missing.erase(key);
    expect_refusal(missing, key);
  }
  Json extra = good;
  extra["machine"]["l4_bytes"] = 1;
  expect_refusal(extra, "l4_bytes");
  extra = good;
  extra["colour"] = "red";
  expect_refusal(extra, "colour");
}

TEST(Profile, ExtraSectionOfTheProbe) {
  Json json = Json::parse(profile_to_json(sample()));
  json["probe"] = {{"anything", {1, 2, 3}}};
  std::string error;
  EXPECT_TRUE(profile_from_json(json.dump(), &error)) << error;
}

TEST(Profile, Values) {
  const Json good = Json::parse(profile_to_json(sample()));
  const auto with = [&good](const char* key, const Json& value) {
    Json json = good;
    json["machine"][key] = value;
    return json;
  };
  Json version = good;
  version["omni_profile"] = 2;
  expect_refusal(version, "omni_profile");
  expect_refusal(with("isa", {"avx2", "avx1024"}), "avx1024");
  expect_refusal(with("isa", {"gfni"}), "isa");  // isa_hardware lacks it
  expect_refusal(with("isa_hardware", {1}), "isa_hardware");
  expect_refusal(with("traits", {"fast"}), "fast");
  expect_refusal(with("cores_usable", 0), "cores_usable");
  expect_refusal(with("cores_online", (uint64_t{1} << 32) + 1), "cores_online");
  expect_refusal(with("l3_bytes", -1), "l3_bytes");
  expect_refusal(with("l3_bytes", 1.5), "l3_bytes");
  expect_refusal(with("vendor", std::string(16, 'x')), "vendor");
  expect_refusal(with("name", std::string("a\0b", 3)), "name");
}

TEST(Profile, Text) {
  std::string error;
  for (const char* text : {"", "{", "[]", "3", "null", "{\"omni_profile\": 1,}", "{}"}) {
    error.clear();
    EXPECT_FALSE(profile_from_json(text, &error)) << text;
    EXPECT_FALSE(error.empty()) << text;
  }
  std::string twice = profile_to_json(sample());
  twice.replace(twice.find("\"name\""), 6, "\"vendor\"");
  EXPECT_FALSE(profile_from_json(twice, &error));
  EXPECT_EQ(error, "key \"vendor\" appears twice");
  const std::string deep(100000, '[');
  EXPECT_FALSE(profile_from_json(deep, &error));
}

TEST(Profile, NameThatIsNoUtf8) {
  omni_machine machine = sample();
  std::strcpy(machine.name, "\xFF\xFE");
  std::string error;
  EXPECT_TRUE(profile_from_json(profile_to_json(machine), &error)) << error;
}

class ProfileApi : public ::testing::Test {
 protected:
  ~ProfileApi() override {
    omni_set_profile_json(nullptr);
    omni_set_max_isa(nullptr);
    set_bf16_dot_demoted(false);
  }
  static omni_machine get() {
    omni_machine machine{};
    machine.size = sizeof machine;
    EXPECT_EQ(omni_get_machine(&machine), OMNI_OK) << omni_last_error();
    return machine;
  }
};

TEST_F(ProfileApi, ReplacesAndRestoresTheMachine) {
  const omni_machine real = get();
  const IsaMask hardware = hardware_isa();
  ASSERT_EQ(omni_set_profile_json(profile_to_json(sample()).c_str()), OMNI_OK) << omni_last_error();
  EXPECT_EQ(get().cores_online, 96u);
  EXPECT_EQ(current_machine().isa, sample().isa);
  EXPECT_EQ(hardware_isa(), hardware) << "a profile emulates, the hardware stays";
  EXPECT_EQ(default_thread_count(), real.cores_usable);
  EXPECT_EQ(omni_set_profile_json("{}"), OMNI_ERR_PROFILE);
  EXPECT_NE(std::strstr(omni_last_error(), "omni_profile"), nullptr) << omni_last_error();
  EXPECT_EQ(get().cores_online, 96u) << "a bad profile changes nothing";
  ASSERT_EQ(omni_set_profile_json(nullptr), OMNI_OK);
  EXPECT_EQ(std::memcmp(&real, &static_cast<const omni_machine&>(get()), sizeof real), 0);
}

TEST_F(ProfileApi, CapAndDemotion) {
  omni_machine machine = sample();
  machine.isa = machine.isa_hardware;
  ASSERT_EQ(omni_set_profile_json(profile_to_json(machine).c_str()), OMNI_OK);
  EXPECT_EQ(get().isa, machine.isa_hardware);
  ASSERT_EQ(omni_set_max_isa("avx2"), OMNI_OK);
  EXPECT_EQ(get().isa, uint32_t{OMNI_ISA_AVX2 | OMNI_ISA_FMA});
  EXPECT_EQ(get().isa_hardware, machine.isa_hardware);
  EXPECT_EQ(omni_set_max_isa("avx3"), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_NE(std::strstr(omni_last_error(), "avx3"), nullptr);
  EXPECT_EQ(get().isa, uint32_t{OMNI_ISA_AVX2 | OMNI_ISA_FMA});
  ASSERT_EQ(omni_set_max_isa(""), OMNI_OK);
  EXPECT_EQ(get().isa, machine.isa_hardware);

  set_bf16_dot_demoted(true);  // this machine's verdict is none on the profile's machine
  EXPECT_EQ(get().isa, machine.isa_hardware);
  machine.traits |= OMNI_TRAIT_BF16_DOT_DEMOTED;
  ASSERT_EQ(omni_set_profile_json(profile_to_json(machine).c_str()), OMNI_OK);
  EXPECT_EQ(get().isa, machine.isa_hardware & ~uint32_t{OMNI_ISA_AVX512BF16});
  ASSERT_EQ(omni_set_profile_json(nullptr), OMNI_OK);
  EXPECT_EQ(get().isa & OMNI_ISA_AVX512BF16, 0u);
  EXPECT_EQ(hardware_isa() & OMNI_ISA_AVX512BF16, 0u);
  EXPECT_NE(get().traits & OMNI_TRAIT_BF16_DOT_DEMOTED, 0u);
}

TEST_F(ProfileApi, Arguments) {
  EXPECT_EQ(omni_get_machine(nullptr), OMNI_ERR_NULL);
  omni_machine machine;
  std::memset(&machine, 0x5A, sizeof machine);
  machine.size = 8;
  const omni_machine before = machine;
  EXPECT_EQ(omni_get_machine(&machine), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(std::memcmp(&before, &machine, sizeof machine), 0);

  size_t needed = 0;
  EXPECT_EQ(omni_get_profile_json(nullptr, 0, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(omni_get_profile_json(nullptr, 5, &needed), OMNI_ERR_NULL);
  ASSERT_EQ(omni_get_profile_json(nullptr, 0, &needed), OMNI_OK);
  std::string text(needed, 'x');
  EXPECT_EQ(omni_get_profile_json(text.data(), needed - 1, &needed), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(text, std::string(needed, 'x'));
  ASSERT_EQ(omni_get_profile_json(text.data(), needed, &needed), OMNI_OK);
  EXPECT_EQ(text.back(), '\0');
  EXPECT_EQ(omni_set_profile_json(text.c_str()), OMNI_OK) << omni_last_error();
}

}  // namespace
}  // namespace okl
