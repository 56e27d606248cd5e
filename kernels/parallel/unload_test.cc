// SPDX-License-Identifier: Apache-2.0
// A plug-in host unloads the library while its threads sleep in it.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "omni/parallel.h"

namespace {

int use_and_unload() {
  void* const library = dlopen(OMNI_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return 1;
  const auto set_num_threads = reinterpret_cast<decltype(&omni_set_num_threads)>(dlsym(library, "omni_set_num_threads"));
  const auto default_parallel = reinterpret_cast<decltype(&omni_default_parallel)>(dlsym(library, "omni_default_parallel"));
  omni_parallel parallel = {};
  parallel.size = sizeof parallel;
  if (set_num_threads(2) != OMNI_OK || default_parallel(&parallel) != OMNI_OK) return 2;
  parallel.parallel_for(
      parallel.context, 8, [](void*, int64_t) {}, nullptr);
  if (dlclose(library) != 0) return 3;
  if (dlopen(OMNI_LIBRARY, RTLD_NOW | RTLD_NOLOAD) == nullptr) return 5;
  // Longer than a worker spins: it must find its code when it goes to sleep. fork() calls the library's handlers.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  waitpid(child, &status, 0);
  return status == 0 ? 0 : 4;
}

TEST(Unload, ThreadsKeepTheirCode) {
  const pid_t child = fork();
  if (child == 0) _exit(use_and_unload());
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
