// SPDX-License-Identifier: Apache-2.0
#include "jit/cache/code_cache.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>

#include "jit/memory/executable_memory.h"

namespace okl::jit {
namespace {

enum Progress : uint32_t { kPending, kReady, kFailed };

struct Entry {
  std::atomic<uint32_t> progress = kPending;
  pid_t generator = ::getpid();  // a forked child inherits pending entries whose generating thread it lacks
  GeneratedCode code;            // written before progress becomes kReady
};

using Key = std::string;

struct Cache {
  std::unordered_map<Key, std::shared_ptr<Entry>> entries;
  std::unordered_map<std::string, GeneratedCode> first_by_name;
  CacheStatistics statistics;
};

constinit std::mutex mutex;

// Never destroyed: kernels may run while the process exits.
Cache& cache() {
  static Cache& instance = *new Cache;
  return instance;
}

[[gnu::constructor]] void register_fork_handlers() {
  cache();  // made here, so that no fork can fall into its initialisation
  pthread_atfork([] { mutex.lock(); }, [] { mutex.unlock(); }, [] { mutex.unlock(); });
}

// The length comes first, so that no name and configuration run together into those of another kernel.
Key make_key(std::string_view name, std::span<const std::byte> config) {
  const uint64_t length = name.size();
  Key key(reinterpret_cast<const char*>(&length), sizeof length);
  key += name;
  key.append(reinterpret_cast<const char*>(config.data()), config.size());
  return key;
}

// The entry of `key` and whether the caller has to fill it.
std::pair<std::shared_ptr<Entry>, bool> find_or_claim(const Key& key) {
  const std::lock_guard lock(mutex);
  std::shared_ptr<Entry>& slot = cache().entries[key];
  if (slot != nullptr) {
    const bool abandoned = slot->progress.load(std::memory_order_relaxed) == kPending && slot->generator != ::getpid();
    if (!abandoned) {
      ++cache().statistics.hits;
      return {slot, false};
    }
  }
  slot = std::make_shared<Entry>();
  return {slot, true};
}

GeneratedCode generate_and_publish(std::string_view name, const std::function<CodeBytes()>& generate) {
  try {
    const CodeBytes bytes = generate();
    const void* entry = bytes.empty() ? nullptr : publish(bytes.data(), bytes.size(), name);
    return {entry, entry == nullptr ? 0 : bytes.size()};
  } catch (...) {
    return {};  // a generator's exceptions (Xbyak::Error, std::bad_alloc) mean that this kernel cannot be had
  }
}

void settle(const Key& key, std::string_view name, Entry* entry, const GeneratedCode& code) {
  const std::lock_guard lock(mutex);
  Cache& own = cache();
  ++own.statistics.generated;
  entry->code = code;
  if (code.entry == nullptr) {
    own.entries.erase(key);
  } else {
    ++own.statistics.kernels;
    own.statistics.bytes += code.bytes;
    try {
      own.first_by_name.try_emplace(std::string(name), code);
    } catch (const std::bad_alloc&) {  // only a disassembly will miss it; the threads that wait must not
    }
  }
}

}  // namespace

GeneratedCode find_or_generate(std::string_view name, std::span<const std::byte> key, const std::function<CodeBytes()>& generate) {
  const Key full_key = make_key(name, key);
  const auto [entry, mine] = find_or_claim(full_key);
  if (mine) {
    settle(full_key, name, entry.get(), generate_and_publish(name, generate));
    entry->progress.store(entry->code.entry == nullptr ? kFailed : kReady, std::memory_order_release);
    entry->progress.notify_all();
  } else {
    entry->progress.wait(kPending, std::memory_order_acquire);
  }
  return entry->code;
}

GeneratedCode find_by_name(std::string_view name) {
  const std::lock_guard lock(mutex);
  const auto found = cache().first_by_name.find(std::string(name));
  return found == cache().first_by_name.end() ? GeneratedCode() : found->second;
}

CacheStatistics cache_statistics() {
  const std::lock_guard lock(mutex);
  return cache().statistics;
}

}  // namespace okl::jit
