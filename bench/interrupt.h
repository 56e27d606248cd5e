// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_INTERRUPT_H
#define OMNI_BENCH_INTERRUPT_H

#include <sys/types.h>

#include <string>

namespace omnibench {

/// Lets SIGINT, SIGTERM and SIGHUP kill the noted process groups and remove the noted folders before they end this process. The
/// groups are not the terminal's, so Ctrl-C alone would leave them running. A signal that is ignored (nohup) stays ignored.
void clean_up_when_interrupted();

/// While one exists, those signals wait: between starting something and noting it. Cheap; any thread.
class Uninterrupted {
 public:
  Uninterrupted();
  ~Uninterrupted();
  Uninterrupted(const Uninterrupted&) = delete;
  Uninterrupted& operator=(const Uninterrupted&) = delete;
};

/// At most 64 of each at a time: false when there is no room. Call them while an Uninterrupted exists.
bool note_group(pid_t group);
void forget_group(pid_t group);
bool note_folder(const std::string& path);  ///< also false for a path of 4096 bytes and more
void forget_folder(const std::string& path);

/// The files that a noted folder may hold; the handler cannot list a folder (that allocates).
inline constexpr const char* kFolderFiles[] = {"codes", "scales", "x", "output"};

}  // namespace omnibench
#endif
