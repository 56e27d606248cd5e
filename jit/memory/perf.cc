// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/perf.h"

#include <elf.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <mutex>
#include <vector>

namespace okl::jit {
namespace {

struct Region {
  const void* code;
  size_t bytes;
  std::string name;
};

struct Modes {
  bool perf_map = false;
  bool jitdump = false;
  std::string jitdump_directory;
};

// Closes on scope exit unless released.
class File {
 public:
  File() = default;
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = other.release();
    }
    return *this;
  }
  ~File() { close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  int fd_ = -1;
};

bool write_all(int fd, const void* data, size_t bytes) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = ::write(fd, from, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<size_t>(written);
  }
  return true;
}

// Both names can be guessed and may lie in a directory that others write to: never through a link, never into another's file.
File open_own_file(const std::string& path, int extra_flags, std::string* error) {
  File file(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | extra_flags, 0600));
  struct stat status = {};
  if (!file || ::fstat(file.get(), &status) != 0) {
    *error = "cannot open " + path + ": " + strerrordesc_np(errno);
    return {};
  }
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid() || status.st_nlink != 1) {
    *error = path + " exists and is not a file of this user alone";
    return {};
  }
  return file;
}

// The jitdump format, version 1: fixed-width fields in host order.
struct DumpHeader {
  uint32_t magic = 0x4A695444;  // "JiTD"
  uint32_t version = 1;
  uint32_t total_size = sizeof(DumpHeader);
#if defined(__x86_64__)
  uint32_t elf_machine = EM_X86_64;
#elif defined(__aarch64__)
  uint32_t elf_machine = EM_AARCH64;
#else
#error "name the ELF machine of this architecture"
#endif
  uint32_t padding = 0;
  uint32_t pid = 0;
  uint64_t timestamp = 0;
  uint64_t flags = 0;
};
static_assert(sizeof(DumpHeader) == 40);

struct DumpCodeLoad {
  uint32_t id = 0;  // JIT_CODE_LOAD
  uint32_t total_size = 0;
  uint64_t timestamp = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t vma = 0;
  uint64_t code_address = 0;
  uint64_t code_size = 0;
  uint64_t code_index = 0;
};
static_assert(sizeof(DumpCodeLoad) == 56);

uint64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Outputs {
  File map;
  File dump;
  uint64_t dump_index = 0;

  bool open(const Modes& modes, pid_t pid, std::string* error) {
    if (modes.perf_map) {
      // Appended to: another generator of this process may share the file, as perf's convention has one name for all.
      map = open_own_file("/tmp/perf-" + std::to_string(pid) + ".map", O_APPEND, error);
      if (!map) return false;
    }
    return !modes.jitdump || open_dump(modes.jitdump_directory, pid, error);
  }

  void add(const Region& region) {
    if (map && !add_to_map(region)) map.close();
    if (dump && !add_to_dump(region)) dump.close();
  }

 private:
  bool open_dump(const std::string& directory, pid_t pid, std::string* error) {
    const std::string path = (directory.empty() ? "" : directory + "/") + "jit-" + std::to_string(pid) + ".dump";
    File file = open_own_file(path, 0, error);
    if (!file) return false;
    DumpHeader header;
    header.pid = static_cast<uint32_t>(pid);
    header.timestamp = monotonic_ns();
    if (::ftruncate(file.get(), 0) != 0 || !write_all(file.get(), &header, sizeof header)) {
      *error = "cannot write " + path + ": " + strerrordesc_np(errno);
      return false;
    }
    // perf learns of the file from the event that this executable mapping makes; the page is never used and stays mapped.
    const size_t page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    if (::mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0) == MAP_FAILED) {
      *error = "cannot map " + path + " as perf's marker: " + strerrordesc_np(errno);
      return false;
    }
    dump = std::move(file);
    return true;
  }

  bool add_to_map(const Region& region) const {
    std::array<char, 40> numbers = {};
    const int length = std::snprintf(numbers.data(), numbers.size(), "%zx %zx ",
                                     static_cast<size_t>(reinterpret_cast<uintptr_t>(region.code)), region.bytes);
    const std::string line = std::string(numbers.data(), static_cast<size_t>(length)) + region.name + "\n";
    return write_all(map.get(), line.data(), line.size());
  }

  bool add_to_dump(const Region& region) {
    DumpCodeLoad load;
    load.total_size = static_cast<uint32_t>(sizeof load + region.name.size() + 1 + region.bytes);
    load.timestamp = monotonic_ns();
    load.pid = static_cast<uint32_t>(::getpid());
    load.tid = static_cast<uint32_t>(::syscall(SYS_gettid));
    load.vma = load.code_address = reinterpret_cast<uintptr_t>(region.code);
    load.code_size = region.bytes;
    load.code_index = dump_index++;
    return write_all(dump.get(), &load, sizeof load) && write_all(dump.get(), region.name.c_str(), region.name.size() + 1) &&
           write_all(dump.get(), region.code, region.bytes);
  }
};

bool parse_modes(std::string_view text, Modes* modes, std::string* error) {
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view word = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    constexpr std::string_view with_directory = "jitdump=";
    if (word == "perfmap") {
      modes->perf_map = true;
    } else if (word == "jitdump") {
      modes->jitdump = true;
    } else if (word.starts_with(with_directory) && word.size() > with_directory.size()) {
      modes->jitdump = true;
      modes->jitdump_directory = word.substr(with_directory.size());
    } else {
      *error = "JIT profile \"" + std::string(word) + "\" is none of perfmap, jitdump, jitdump=DIR";
      return false;
    }
  }
  return true;
}

struct State {
  Modes modes;
  Outputs outputs;
  pid_t pid = 0;
  std::vector<Region> regions;
};

constinit std::mutex mutex;

// Never destroyed: code may be published while the process exits.
State& state() {
  static State& instance = *new State;
  return instance;
}

[[gnu::constructor]] void register_fork_handlers() {
  state();  // made here, so that no fork can fall into its initialisation
  pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
}

}  // namespace

bool set_perf_modes(std::string_view modes, std::string* error) {
  Modes parsed;
  Outputs outputs;
  if (!parse_modes(modes, &parsed, error)) return false;
  const std::lock_guard lock(mutex);
  State& own = state();
  if (!outputs.open(parsed, ::getpid(), error)) return false;
  for (const Region& region : own.regions) outputs.add(region);
  own.modes = std::move(parsed);
  own.outputs = std::move(outputs);
  own.pid = ::getpid();
  return true;
}

void perf_register(const void* code, size_t bytes, std::string_view name) {
  const std::lock_guard lock(mutex);
  State& own = state();
  own.regions.push_back({code, bytes, std::string(name)});
  if (!own.modes.perf_map && !own.modes.jitdump) return;
  const pid_t pid = ::getpid();
  if (pid == own.pid) {
    own.outputs.add(own.regions.back());
    return;
  }
  // A forked child: both files carry the process id, so the parent's are not ours to write.
  Outputs outputs;
  std::string ignored;
  own.pid = pid;
  if (outputs.open(own.modes, pid, &ignored)) {
    for (const Region& region : own.regions) outputs.add(region);
  }
  own.outputs = std::move(outputs);
}

}  // namespace okl::jit
