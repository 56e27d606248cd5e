// SPDX-License-Identifier: Apache-2.0
// Arms outside this process. Protocol of a worker: docs/workers.md.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/arms/arms.h"
#include "bench/interrupt.h"
#include "bench/ops/op.h"
#include "bench/subprocess.h"

namespace omnibench {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr double kSetUpSeconds = 600;  // importing PyTorch and packing a 131072x2048 matrix took 30 s
constexpr double kRunSeconds = 300;

/// A directory of our own for operands, removed with everything in it.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (fs::temp_directory_path() / "omni-bench-XXXXXX").string();
    const Uninterrupted until_noted;
    if (mkdtemp(pattern.data()) == nullptr)
      throw std::runtime_error("cannot create a directory in " + fs::temp_directory_path().string());
    path_ = pattern;
    if (note_folder(pattern)) return;
    rmdir(pattern.c_str());
    throw std::runtime_error("too many workers at a time, or too long a path: " + pattern);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
    forget_folder(path_.string());
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] std::string file(const char* name) const { return (path_ / name).string(); }

 private:
  fs::path path_;
};

void write_file(const std::string& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!file) throw std::runtime_error("cannot write " + path);
}

std::vector<char> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("the worker wrote no output");
  return {std::istreambuf_iterator<char>(file), {}};
}

class WorkerArm final : public Arm {
 public:
  WorkerArm(std::string name, Workload& workload, std::string command) : workload_(workload), command_(std::move(command)) {
    info_.name = std::move(name);
    info_.detail = command_;
    info_.flops = operations_of(workload_.the_case());
  }

  void prepare() override {
    const Case& c = workload_.the_case();
    const Op& op = op_of(c);
    scratch_ = std::make_unique<Scratch>();
    json question = {{"op", c.op},
                     {"shape", c.shape.name},
                     {"m", c.m},
                     {"group", c.group},
                     {"class", c.variant},
                     {"cache", c.hot ? "hot" : "cold"},
                     {"rotation_bytes", c.hot ? 0 : cold_rotation_bytes()},
                     {"threads", c.threads},
                     {"seed", c.shape.seed}};
    for (size_t i = 0; i < op.sizes.size(); ++i) question[op.sizes[i]] = c.size(i);
    workload_.write_operands([&](const char* name, const void* data, size_t bytes) {
      write_file(scratch_->file(name), data, bytes);
      question[name] = scratch_->file(name);
    });
    process_ = std::make_unique<Subprocess>("exec " + command_);
    const json answer = ask("case " + question.dump(), kSetUpSeconds);
    info_.detail = answer.value("detail", command_);
    info_.bytes = answer.value("bytes", 0.0);
    compare_ = answer.value("compare", "none");
  }

  Verification verify() override {
    if (compare_ == "none") return {false, "the worker offers nothing to compare"};
    const std::string path = scratch_->file("output");
    const json answer = ask("output " + path, kRunSeconds);
    const std::vector<char> bytes = read_file(path);
    return workload_.compare(bytes.data(), bytes.size(), answer.value("type", "bf16") == "f32", compare_);
  }

  double sample(Clock& /*clock*/, int64_t calls) override {
    const json answer = ask(fmt::format("run {}", calls), kRunSeconds);
    const double ns = answer.value("ns", -1.0);
    if (!(ns >= 0)) throw std::runtime_error("the worker's answer has no ns: " + answer.dump());
    return ns;
  }

  [[nodiscard]] std::vector<pid_t> processes() const override {
    return process_ != nullptr ? std::vector<pid_t>{process_->pid()} : std::vector<pid_t>{};
  }

 private:
  /// After a failure the worker is killed: a late answer would be taken for that of the next question, and every further pass would
  /// wait its 300 s.
  std::string exchange(const std::string& line, double seconds) {
    if (process_ == nullptr) throw std::runtime_error("the worker was given up: " + given_up_);
    try {
      process_->write_line(line);
      return process_->read_line(seconds);
    } catch (const std::exception& error) {
      given_up_ = error.what();
      process_->kill();
      process_.reset();
      throw;
    }
  }

  json ask(const std::string& line, double seconds) {
    const std::string text = exchange(line, seconds);
    json answer = json::parse(text, nullptr, false);
    if (!answer.is_object()) throw std::runtime_error("the worker answered no JSON object: " + text.substr(0, 200));
    if (answer.contains("refused")) throw Refused(answer["refused"].is_string() ? answer["refused"].get<std::string>() : "refused");
    if (answer.contains("error")) throw std::runtime_error(answer["error"].is_string() ? answer["error"].get<std::string>() : text);
    return answer;
  }

  Workload& workload_;
  std::string command_, compare_, given_up_;
  std::unique_ptr<Scratch> scratch_;
  std::unique_ptr<Subprocess> process_;
};

class CommandArm final : public Arm {
 public:
  CommandArm(std::string name, std::string command) : command_(std::move(command)) {
    info_.name = std::move(name);
    info_.detail = "whole time of: " + command_;
  }
  double sample(Clock& clock, int64_t calls) override {
    const int64_t from = clock.now_ns();
    for (int64_t i = 0; i < calls; ++i) run_command(command_);
    return static_cast<double>(clock.now_ns() - from);
  }
  [[nodiscard]] bool repeats() const override { return false; }

 private:
  std::string command_;
};

}  // namespace

std::unique_ptr<Arm> make_worker_arm(std::string name, Workload& workload, std::string command) {
  return std::make_unique<WorkerArm>(std::move(name), workload, std::move(command));
}

std::unique_ptr<Arm> make_command_arm(std::string name, std::string command) {
  return std::make_unique<CommandArm>(std::move(name), std::move(command));
}

}  // namespace omnibench
