// SPDX-License-Identifier: Apache-2.0
// Code is packed into chunks of 64 KiB, so that kernels called in turn share few page-table lines and few mappings.
//
//  kMapped        A page that is executable may be running on another thread, so it cannot be made writable again. Every publish
//                 starts on a fresh page of the chunk; neighbouring flipped pages merge into one mapping. A kernel wastes half a
//                 page on average: 100 kernels, 200 KiB.
//  kDoubleMapped  The executable view never changes; a writable view of the pages at hand exists only while code is copied. Kernels
//                 lie 64 bytes apart and share pages.
//
// A forked child shares the memory object of a double mapping with its parent. Published bytes are never rewritten, so code stays
// valid in both, but free space must not be used by both: the child starts a chunk of its own.
#include "jit/memory/executable_memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>

#include "jit/memory/perf.h"

namespace okl::jit {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 10;
constexpr size_t kCodeAlignment = 64;
constexpr uint32_t kTrialAnswer = 0x6f6d6e69;

// A function that returns kTrialAnswer.
constexpr uint8_t kTrialCode[] = {
#if defined(__x86_64__)
    0xb8, 0x69, 0x6e, 0x6d, 0x6f,  // mov eax, 0x6f6d6e69
    0xc3                           // ret
#elif defined(__aarch64__)
    0x20, 0xcd, 0x8d, 0x52,  // mov w0, #0x6e69
    0xa0, 0xed, 0xad, 0x72,  // movk w0, #0x6f6d, lsl #16
    0xc0, 0x03, 0x5f, 0xd6   // ret
#else
#error "write a trial stub for this architecture"
#endif
};

#if defined(__x86_64__)
constexpr int kFiller = 0xcc;  // int3: a jump into a gap traps
#else
constexpr int kFiller = 0;   // udf
#endif

struct Chunk {
  uint8_t* code = nullptr;  // readable, then executable
  size_t bytes = 0;
  size_t used = 0;
  int fd = -1;  // of a double mapping, kept until the chunk is full
  pid_t owner = 0;
};

struct Arena {
  CodeState state = CodeState::kRefused;
  std::string reason;
  Chunk chunk;
  bool tried = false;
};

struct Failure {
  std::string text;
  int number = 0;  // errno
};

constinit std::mutex mutex;

// Never destroyed: code lives for the process.
Arena& arena() {
  static Arena& instance = *new Arena;
  return instance;
}

[[gnu::constructor]] void register_fork_handlers() {
  arena();  // made here, so that no fork can fall into its initialisation
  pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
}

size_t round_up(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

Failure failed(const char* what) {
  const int number = errno;
  return {std::string(what) + ": " + strerrordesc_np(number), number};
}

// The old chunk stays mapped for the code in it.
bool start_chunk(CodeState state, size_t bytes, Chunk* chunk, Failure* error) {
  if (chunk->fd >= 0) ::close(chunk->fd);
  *chunk = {};
  const size_t size = round_up(std::max(bytes, kChunkBytes), page_bytes());
  void* memory = MAP_FAILED;
  int fd = -1;
  if (state == CodeState::kMapped) {
    memory = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) *error = failed("mmap of writable memory");
  } else {
    fd = ::memfd_create("omni-jit", MFD_CLOEXEC);
    if (fd < 0) {
      *error = failed("memfd_create");
    } else if (::ftruncate(fd, static_cast<off_t>(size)) != 0) {
      *error = failed("ftruncate of a memfd");
    } else {
      memory = ::mmap(nullptr, size, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
      if (memory == MAP_FAILED) *error = failed("mmap(PROT_EXEC) of a memfd");
    }
  }
  if (memory == MAP_FAILED) {
    if (fd >= 0) ::close(fd);
    return false;
  }
  *chunk = {.code = static_cast<uint8_t*>(memory), .bytes = size, .used = 0, .fd = fd, .owner = ::getpid()};
  return true;
}

// Fills `room` bytes: a gap of kCodeAlignment, the code, filler to the end.
void copy_code(uint8_t* to, size_t room, const void* code, size_t bytes) {
  std::memset(to, kFiller, room);
  std::memcpy(to + kCodeAlignment, code, bytes);
}

const void* place_mapped(Chunk* chunk, const void* code, size_t bytes, Failure* error) {
  const size_t page = page_bytes();
  const size_t need = round_up(kCodeAlignment + bytes, page);
  if (chunk->bytes - chunk->used < need && !start_chunk(CodeState::kMapped, need, chunk, error)) return nullptr;
  uint8_t* const start = chunk->code + chunk->used;
  copy_code(start, need, code, bytes);
  if (::mprotect(start, need, PROT_READ | PROT_EXEC) != 0) {
    *error = failed("mprotect(PROT_EXEC)");
    return nullptr;
  }
  chunk->used += need;
  return start + kCodeAlignment;
}

const void* place_double_mapped(Chunk* chunk, const void* code, size_t bytes, Failure* error) {
  const size_t need = kCodeAlignment + round_up(bytes, kCodeAlignment);
  if ((chunk->bytes - chunk->used < need || chunk->owner != ::getpid()) &&
      !start_chunk(CodeState::kDoubleMapped, need, chunk, error)) {
    return nullptr;
  }
  const size_t view_start = chunk->used / page_bytes() * page_bytes();
  const size_t end = chunk->used + need;
  void* const view =
      ::mmap(nullptr, end - view_start, PROT_READ | PROT_WRITE, MAP_SHARED, chunk->fd, static_cast<off_t>(view_start));
  if (view == MAP_FAILED) {
    *error = failed("mmap of the writable view");
    return nullptr;
  }
  copy_code(static_cast<uint8_t*>(view) + (chunk->used - view_start), need, code, bytes);
  ::munmap(view, end - view_start);
  const void* const entry = chunk->code + chunk->used + kCodeAlignment;
  chunk->used = end;
  return entry;
}

const void* place(CodeState state, Chunk* chunk, const void* code, size_t bytes, Failure* error) {
  const void* entry =
      state == CodeState::kMapped ? place_mapped(chunk, code, bytes, error) : place_double_mapped(chunk, code, bytes, error);
  if (entry != nullptr) {
    char* const begin = static_cast<char*>(const_cast<void*>(entry));
    __builtin___clear_cache(begin, begin + bytes);
  }
  return entry;
}

bool works(CodeState state, Chunk* chunk, Failure* error) {
  *chunk = {};
  const void* entry = place(state, chunk, kTrialCode, sizeof kTrialCode, error);
  if (entry == nullptr) return false;
  uint32_t (*trial)() = nullptr;
  std::memcpy(&trial, &entry, sizeof trial);
  if (trial() == kTrialAnswer) return true;
  *error = {"a generated stub returned a wrong value", 0};
  return false;
}

void discard(Chunk* chunk) {
  if (chunk->code != nullptr) ::munmap(chunk->code, chunk->bytes);
  if (chunk->fd >= 0) ::close(chunk->fd);
  *chunk = {};
}

// Settles on the first state from `first` on whose trial stub runs. `refusal`: why the ones before it do not serve.
void settle(Arena* own, CodeState first, std::string refusal) {
  for (const CodeState state : {CodeState::kMapped, CodeState::kDoubleMapped}) {
    if (state < first) continue;
    Chunk chunk;
    Failure error;
    if (works(state, &chunk, &error)) {
      own->state = state;
      own->reason = std::move(refusal);
      own->chunk = chunk;
      return;
    }
    discard(&chunk);
    refusal += (refusal.empty() ? "" : "; ") + error.text;
  }
  own->state = CodeState::kRefused;
  own->reason = std::move(refusal);
  own->chunk = {};
}

// The arena after its trial; `mutex` is held.
Arena& tried_arena() {
  Arena& own = arena();
  if (!own.tried) {
    settle(&own, CodeState::kMapped, "");
    own.tried = true;
  }
  return own;
}

}  // namespace

CodeState code_state() {
  const std::lock_guard lock(mutex);
  return tried_arena().state;
}

std::string code_state_reason() {
  const std::lock_guard lock(mutex);
  return tried_arena().reason;
}

const void* publish(const void* code, size_t bytes, std::string_view name) {
  const void* entry = nullptr;
  {
    const std::lock_guard lock(mutex);
    Arena& own = tried_arena();
    if (bytes == 0 || bytes > (size_t{1} << 30)) return nullptr;
    Failure error;
    if (own.state != CodeState::kRefused) entry = place(own.state, &own.chunk, code, bytes, &error);
    // A sandbox may have been entered since the trial: the double mapping can still serve then.
    if (entry == nullptr && own.state == CodeState::kMapped && (error.number == EACCES || error.number == EPERM)) {
      settle(&own, CodeState::kDoubleMapped, error.text);
      if (own.state != CodeState::kRefused) entry = place(own.state, &own.chunk, code, bytes, &error);
    }
  }
  if (entry != nullptr) perf_register(entry, bytes, name);
  return entry;
}

}  // namespace okl::jit
