// SPDX-License-Identifier: Apache-2.0
#include "tools/pack/report.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "reference/pack/staged_directory.h"

namespace pack {
namespace {

double mib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

struct Sums {
  uint64_t bytes = 0;
  double seconds = 0;
};
Sums sums_of(const ref::PackResult& result) {
  Sums sums;
  for (const ref::TensorReport& tensor : result.tensors) {
    sums.bytes += tensor.bytes;
    sums.seconds += tensor.seconds;
  }
  return sums;
}

}  // namespace

std::string report_table(const ref::PackResult& result) {
  size_t name = 6, layout = 6;
  for (const ref::TensorReport& tensor : result.tensors) {
    name = std::max(name, tensor.name.size());
    layout = std::max(layout, tensor.layout.size());
  }
  std::string text =
      fmt::format("{:<{}}  {:<{}}  {:>9}  {:>9}  {:>8}\n", "tensor", name, "layout", layout, "MiB", "error", "seconds");
  for (const ref::TensorReport& tensor : result.tensors) {
    text += fmt::format("{:<{}}  {:<{}}  {:>9.3f}  {:>9}  {:>8.3f}\n", tensor.name, name, tensor.layout, layout, mib(tensor.bytes),
                        tensor.relative_error == 0 ? "exact" : fmt::format("{:.6f}", tensor.relative_error), tensor.seconds);
  }
  const Sums sums = sums_of(result);
  text += fmt::format("{:<{}}  {:<{}}  {:>9.3f}  {:>9}  {:>8.3f}\n", "total", name, "", layout, mib(sums.bytes), "", sums.seconds);
  return text;
}

std::string report_json(const ref::PackResult& result) {
  nlohmann::ordered_json root;
  root["notes"] = result.notes;
  root["bytes"] = sums_of(result).bytes;
  root["tensors"] = nlohmann::ordered_json::array();
  for (const ref::TensorReport& tensor : result.tensors) {
    nlohmann::ordered_json entry;
    entry["name"] = tensor.name;
    entry["layout"] = tensor.layout;
    entry["n"] = tensor.n;
    entry["k"] = tensor.k;
    entry["bytes"] = tensor.bytes;
    entry["relative_error"] = tensor.relative_error;
    entry["seconds"] = tensor.seconds;
    root["tensors"].push_back(std::move(entry));
  }
  return root.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

void write_report(const std::string& path, const std::string& text) {
  const std::string aside = path + ".part" + std::to_string(::getpid());
  const int descriptor = ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) throw ref::OutputError(path + ": cannot be made (" + std::strerror(errno) + ")");
  try {
    ref::write_at(descriptor, std::as_bytes(std::span(text)), 0, path);
  } catch (...) {
    ::close(descriptor);
    ::unlink(aside.c_str());
    throw;
  }
  ::close(descriptor);
  if (std::rename(aside.c_str(), path.c_str()) == 0) return;
  const int error = errno;
  ::unlink(aside.c_str());
  throw ref::OutputError(path + ": cannot be written (" + std::strerror(error) + ")");
}

}  // namespace pack
