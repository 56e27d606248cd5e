// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/profile.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <vector>

#include "kernels/cpu/isa.h"

namespace okl {
namespace {

using Json = nlohmann::ordered_json;

// Stays inside this file: profile_from_json() turns it into its error line.
struct Refusal : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct TraitWord {
  const char* name;
  uint32_t bit;
};

constexpr TraitWord kTraits[] = {{"slow_bf16_dot", OMNI_TRAIT_SLOW_BF16_DOT}, {"bf16_dot_demoted", OMNI_TRAIT_BF16_DOT_DEMOTED}};

constexpr const char* kMachineKeys[] = {"vendor",       "name",      "isa",      "isa_hardware", "traits",    "cores_online",
                                        "cores_usable", "l1d_bytes", "l2_bytes", "l3_bytes",     "amx_reason"};

std::string quote(std::string_view key) { return "\"" + std::string(key.substr(0, 80)) + "\""; }

// The parser keeps the last of two equal keys, which would hide a typo.
Json parse(std::string_view text) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&open](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second) {
      throw Refusal("key " + quote(parsed.get<std::string>()) + " appears twice");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& e) {
    throw Refusal("not JSON at byte " + std::to_string(e.byte));
  }
}

template <typename Keys>
void check_keys(const Json& object, const Keys& known, std::string_view where) {
  for (const auto& item : object.items()) {
    if (std::find(std::begin(known), std::end(known), item.key()) == std::end(known)) {
      throw Refusal("unknown key " + quote(item.key()) + " in " + std::string(where));
    }
  }
}

const Json& member(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) throw Refusal("key " + quote(key) + " is missing");
  return *found;
}

template <typename Integer>
Integer read_number(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_number_unsigned()) throw Refusal("key " + quote(key) + " is no whole number >= 0");
  const uint64_t number = value.get<uint64_t>();
  if (number > std::numeric_limits<Integer>::max())
    throw Refusal("key " + quote(key) + " is out of range: " + std::to_string(number));
  return static_cast<Integer>(number);
}

template <size_t size>
void read_text(const Json& object, const char* key, char (&out)[size]) {
  const Json& value = member(object, key);
  if (!value.is_string()) throw Refusal("key " + quote(key) + " is no string");
  const std::string& text = value.get_ref<const std::string&>();
  if (text.size() >= size || text.find('\0') != std::string::npos) {
    throw Refusal("key " + quote(key) + " is longer than " + std::to_string(size - 1) + " bytes or holds a NUL");
  }
  std::fill(std::begin(out), std::end(out), '\0');
  text.copy(out, text.size());
}

// An array of words, each naming one bit.
template <typename BitOf>
uint32_t read_words(const Json& object, const char* key, const BitOf& bit_of) {
  const Json& value = member(object, key);
  if (!value.is_array()) throw Refusal("key " + quote(key) + " is no array of strings");
  uint32_t mask = 0;
  for (const Json& word : value) {
    if (!word.is_string()) throw Refusal("key " + quote(key) + " is no array of strings");
    const std::string& name = word.get_ref<const std::string&>();
    const std::optional<uint32_t> bit = bit_of(name);
    if (!bit) throw Refusal("key " + quote(key) + " has the unknown word " + quote(name));
    mask |= *bit;
  }
  return mask;
}

std::optional<uint32_t> trait_bit(std::string_view name) {
  for (const TraitWord& trait : kTraits) {
    if (name == trait.name) return trait.bit;
  }
  return std::nullopt;
}

omni_machine read_machine(const Json& object) {
  if (!object.is_object()) throw Refusal("key \"machine\" is no object");
  check_keys(object, kMachineKeys, "\"machine\"");
  omni_machine machine{};
  machine.size = sizeof machine;
  read_text(object, "vendor", machine.vendor);
  read_text(object, "name", machine.name);
  machine.isa = read_words(object, "isa", isa_bit);
  machine.isa_hardware = read_words(object, "isa_hardware", isa_bit);
  if ((machine.isa & ~machine.isa_hardware) != 0) {
    throw Refusal("key \"isa\" has words that \"isa_hardware\" lacks: " + isa_to_text(machine.isa & ~machine.isa_hardware));
  }
  machine.traits = read_words(object, "traits", trait_bit);
  machine.cores_online = read_number<uint32_t>(object, "cores_online");
  machine.cores_usable = read_number<uint32_t>(object, "cores_usable");
  if (machine.cores_online == 0) throw Refusal("key \"cores_online\" is 0");
  if (machine.cores_usable == 0) throw Refusal("key \"cores_usable\" is 0");
  machine.l1d_bytes = read_number<uint64_t>(object, "l1d_bytes");
  machine.l2_bytes = read_number<uint64_t>(object, "l2_bytes");
  machine.l3_bytes = read_number<uint64_t>(object, "l3_bytes");
  read_text(object, "amx_reason", machine.amx_reason);
  return machine;
}

Json isa_words(IsaMask mask) {
  Json words = Json::array();
  for (uint32_t bit = 0; bit < 32; ++bit) {
    if (std::string word = isa_to_text(mask & (1u << bit)); !word.empty()) words.push_back(std::move(word));
  }
  return words;
}

}  // namespace

std::optional<omni_machine> profile_from_json(std::string_view json, std::string* error) {
  try {
    const Json root = parse(json);
    if (!root.is_object()) throw Refusal("not a JSON object");
    constexpr const char* kRootKeys[] = {"omni_profile", "machine", "probe"};
    check_keys(root, kRootKeys, "the profile");
    const uint32_t version = read_number<uint32_t>(root, "omni_profile");
    if (version != kProfileVersion) {
      throw Refusal("key \"omni_profile\" is version " + std::to_string(version) + ", expected " + std::to_string(kProfileVersion));
    }
    return read_machine(member(root, "machine"));
  } catch (const Refusal& refusal) {
    *error = refusal.what();
    return std::nullopt;
  }
}

std::string profile_to_json(const omni_machine& machine) {
  Json traits = Json::array();
  for (const TraitWord& trait : kTraits) {
    if ((machine.traits & trait.bit) != 0) traits.push_back(trait.name);
  }
  const Json root = {{"omni_profile", kProfileVersion},
                     {"machine",
                      {{"vendor", machine.vendor},
                       {"name", machine.name},
                       {"isa", isa_words(machine.isa)},
                       {"isa_hardware", isa_words(machine.isa_hardware)},
                       {"traits", traits},
                       {"cores_online", machine.cores_online},
                       {"cores_usable", machine.cores_usable},
                       {"l1d_bytes", machine.l1d_bytes},
                       {"l2_bytes", machine.l2_bytes},
                       {"l3_bytes", machine.l3_bytes},
                       {"amx_reason", machine.amx_reason}}}};
  // A brand string with bytes that are no UTF-8 must not make the profile unwritable.
  return root.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace okl
