// SPDX-License-Identifier: Apache-2.0
#include "bench/golden/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "bench/golden/checks.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/output_file.h"

namespace omnibench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kOutcomeNames[] = {"passed", "failed", "not run", "not covered"};
const char* name_of(Outcome outcome) { return kOutcomeNames[static_cast<size_t>(outcome)]; }

bool is_golden_name(const fs::path& path) { return path.extension() == ".safetensors" || path.extension() == ".json"; }

/// A pipe that nobody writes would hang, a device may never end.
std::string regular(std::string path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) throw UsageError(path + ": is no regular file");
  return path;
}

std::vector<std::string> files_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::exists(path, error)) throw UsageError(path + ": no such file or folder");
    if (!fs::is_directory(path, error)) {
      files.push_back(regular(path));
      continue;
    }
    const size_t before = files.size();
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error)) {
      if (is_golden_name(entry.path()) && !entry.is_directory(error)) files.push_back(regular(entry.path().string()));
    }
    if (error) throw UsageError(path + ": " + error.message());
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  if (files.empty()) throw UsageError("no *.safetensors and no *.json in what was named");
  return files;
}

void check_safetensors(const Session& session, FileRecord* record) {
  GoldenFile file(omni_golden::SafetensorsFile::open(record->path));
  record->kind = file.kind();
  const auto begins = [&](const char* prefix) { return record->kind.starts_with(prefix); };
  if (record->kind == "w4a16") {
    check_w4a16(session, file, record);
  } else if (record->kind == "w4a16_group_output") {
    check_group_output(session, file, record);
  } else if (record->kind == "w4a16_group_edge") {
    check_group_edge(session, file, record);
  } else if (record->kind == "w4a8") {
    check_w4a8(session, file, record);
  } else if (record->kind == "w8a8") {
    check_w8a8(session, file, record);
  } else if (begins("gptq_") || begins("awq_") || begins("ct_packquant_")) {
    check_checkpoint(session, file, record);
  } else {
    record->add("kind " + record->kind, "", Outcome::kNotCovered, "unknown to this version");
  }
}

void check_json(const Session& session, FileRecord* record) {
  Json digests;
  try {
    std::ifstream stream(record->path);
    if (!stream) throw Malformed(record->path + ": cannot be opened");
    digests = Json::parse(stream);
  } catch (const Json::exception&) {
    throw Malformed(record->path + ": is no JSON");
  }
  const auto has_digests = [](const Json& entry) { return entry.is_object() && entry.contains("sha256"); };
  if (!digests.is_object() || std::none_of(digests.begin(), digests.end(), has_digests)) {
    record->kind = "unknown";
    record->add("JSON", "", Outcome::kNotCovered, "holds no digests");
    return;
  }
  record->kind = "digests";
  check_digests(session, record->path, digests, record);
}

FileRecord check_file(const Session& session, const std::string& path) {
  FileRecord record(path);
  try {
    if (fs::path(path).extension() == ".json") {
      check_json(session, &record);
    } else {
      check_safetensors(session, &record);
    }
  } catch (const Malformed& error) {
    record.malformed = error.what();
  } catch (const omni_golden::SafetensorsError& error) {
    record.malformed = error.what();
  } catch (const std::exception& error) {  // the library refused what a check builds on, or there is no memory
    record.add("operands", "", Outcome::kFailed, error.what());
  }
  return record;
}

std::string counts_line(const std::array<size_t, 4>& counts) {
  std::string text;
  for (size_t i = 0; i < counts.size(); ++i) text += fmt::format("{}{} {}", i > 0 ? ", " : "", counts[i], kOutcomeNames[i]);
  return text;
}

std::array<size_t, 4> counts_of(const FileRecord& record) {
  std::array<size_t, 4> counts{};
  for (const Entry& entry : record.entries) ++counts[static_cast<size_t>(entry.outcome)];
  return counts;
}

void print(const FileRecord& record) {
  if (!record.malformed.empty()) {
    std::fflush(stdout);
    fmt::print(stderr, "malformed: {}\n", record.malformed);
    return;
  }
  fmt::print("{}: {}: {}\n", record.path, record.kind, counts_line(counts_of(record)));
  for (const Entry& entry : record.entries) {
    if (entry.outcome != Outcome::kFailed && entry.outcome != Outcome::kNotCovered) continue;
    fmt::print("  {}: {}{}{}: {}\n", name_of(entry.outcome), entry.what, entry.kernel.empty() ? "" : ", kernel ", entry.kernel,
               entry.detail);
  }
  std::fflush(stdout);
}

/// Each reason once, with the kernels that it concerns: the same rows are absent for every file.
void print_not_run(const std::vector<FileRecord>& records) {
  std::map<std::pair<std::string, std::string>, size_t> reasons;
  for (const FileRecord& record : records) {
    for (const Entry& entry : record.entries) {
      if (entry.outcome == Outcome::kNotRun) ++reasons[{entry.kernel, entry.detail}];
    }
  }
  for (const auto& [reason, times] : reasons) fmt::print("not run: {}, {} times: {}\n", reason.first, times, reason.second);
}

Json to_json(const std::vector<FileRecord>& records, const VerifyOptions& options, const std::array<size_t, 4>& counts,
             int status) {
  Json files = Json::array();
  for (const FileRecord& record : records) {
    Json entries = Json::array();
    for (const Entry& entry : record.entries) {
      entries.push_back(
          {{"what", entry.what}, {"kernel", entry.kernel}, {"outcome", name_of(entry.outcome)}, {"detail", entry.detail}});
    }
    files.push_back({{"path", record.path}, {"kind", record.kind}, {"malformed", record.malformed}, {"checks", entries}});
  }
  Json summary;
  for (size_t i = 0; i < counts.size(); ++i) summary[kOutcomeNames[i]] = counts[i];
  return {{"schema", 1},    {"version", omni_version()}, {"machine", machine_json()}, {"threads", options.threads},
          {"files", files}, {"summary", summary},        {"status", status}};
}

int status_of(const std::vector<FileRecord>& records, const std::array<size_t, 4>& counts) {
  if (counts[static_cast<size_t>(Outcome::kFailed)] > 0) return kVerifyFailed;
  const auto malformed = [](const FileRecord& record) { return !record.malformed.empty(); };
  if (std::any_of(records.begin(), records.end(), malformed)) return kVerifyMalformed;
  return counts[static_cast<size_t>(Outcome::kPassed)] > 0 ? kVerifyPassed : kVerifyNothing;
}

}  // namespace

int run_verify(const VerifyOptions& options) {
  const std::vector<std::string> files = files_of(options.paths);
  std::optional<OutputFile> json;
  try {
    if (!options.json_path.empty()) json.emplace(options.json_path);
  } catch (const std::exception& error) {  // bad input, not a failed check
    throw UsageError(std::string("--json ") + error.what());
  }
  Session session;
  session.exhaustive = options.exhaustive;
  for (const uint32_t threads : options.threads) session.pools.push_back(std::make_unique<omni::Pool>(threads));

  std::vector<FileRecord> records;
  std::array<size_t, 4> counts{};
  size_t malformed = 0;
  for (const std::string& file : files) {
    records.push_back(check_file(session, file));
    print(records.back());
    const std::array<size_t, 4> own = counts_of(records.back());
    for (size_t i = 0; i < own.size(); ++i) counts[i] += own[i];
    malformed += records.back().malformed.empty() ? 0 : 1;
  }
  print_not_run(records);
  const int status = status_of(records, counts);
  fmt::print("{} files: {}{}\n", files.size(), counts_line(counts),
             malformed > 0 ? fmt::format(", {} malformed files", malformed) : "");
  if (status == kVerifyNothing) fmt::print("nothing was checked: no file is of a kind that this version covers\n");
  if (json) json->commit(to_json(records, options, counts, status).dump(1) + "\n");
  return status;
}

}  // namespace omnibench
