// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>
#include <string_view>

#include "tools/probe/report.h"

namespace probe {
namespace {

using Json = nlohmann::ordered_json;

Json optional_number(const std::optional<uint64_t>& number) { return number ? Json(*number) : Json(nullptr); }

Json bandwidth_section(const Report& report) {
  if (!report.bandwidth_measured) return nullptr;
  Json list = Json::array();
  for (const Bandwidth& b : report.bandwidth) {
    list.push_back({{"threads", b.threads}, {"pages", b.pages}, {"bytes", b.bytes}, {"gb_per_second", b.gb_per_second}});
  }
  return {{"reads", list}, {"error", report.bandwidth_error}};
}

// The registry says of a kernel that no processor has timed it.
bool timed_on_hardware(const omni_kernel_info& kernel) {
  return std::string_view(kernel.summary).find("not timed on hardware") == std::string_view::npos;
}

Json kernel_section(const Report& report) {
  Json list = Json::array();
  for (const omni_kernel_info& k : report.kernels) {
    list.push_back({{"name", k.name},
                    {"op", k.op},
                    {"class", k.numerics},
                    {"isa", k.isa},
                    {"code", k.code},
                    {"summary", k.summary},
                    {"usable", k.usable != 0},
                    {"timed_on_hardware", timed_on_hardware(k)}});
  }
  return list;
}

Json choice_section(const Report& report) {
  Json list = Json::array();
  for (const Choice& c : report.choices) {
    list.push_back({{"op", c.op},
                    {"class", c.numerics},
                    {"x_type", c.x_type},
                    {"shape", c.shape.name},
                    {"n", c.shape.n},
                    {"k", c.shape.k},
                    {"m", c.m},
                    {"group", c.group},
                    {"kernel", c.kernel},
                    {"code", c.code},
                    {"reason", c.reason}});
  }
  return list;
}

}  // namespace

std::string to_json(const Report& report) {
  Json root = Json::parse(report.profile_json);
  root["probe"] = {{"library_version", omni_version()},
                   {"profile_file", report.profile_file.empty() ? Json(nullptr) : Json(report.profile_file)},
                   {"num_threads", report.num_threads},
                   {"code", code_state(report)},
                   {"amx_usable", report.machine.amx_reason[0] == '\0'},
                   {"system",
                    {{"kernel", report.system.kernel},
                     {"memory_bytes", report.system.memory_bytes},
                     {"transparent_huge_pages", report.system.transparent_huge_pages},
                     {"huge_page_pool", optional_number(report.system.huge_page_pool)},
                     {"huge_page_bytes", optional_number(report.system.huge_page_bytes)}}},
                   {"bandwidth", bandwidth_section(report)},
                   {"kernels", kernel_section(report)},
                   {"choices", choice_section(report)}};
  return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string code_state(const Report& report) {
  for (const Choice& choice : report.choices) {
    if (choice.op == "linear" && !choice.code.empty()) return choice.code;
  }
  return "unknown";
}

std::vector<std::string> profile_words(const std::string& profile_json, const char* key) {
  return Json::parse(profile_json)["machine"][key].get<std::vector<std::string>>();
}

}  // namespace probe
