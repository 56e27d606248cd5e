// SPDX-License-Identifier: Apache-2.0
#include "tools/pack/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace pack {
namespace {

volatile std::sig_atomic_t caught = 0;

void note(int signal) { caught = signal; }

}  // namespace

void watch_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;  // nohup
    action = {};
    action.sa_handler = note;
    action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
  // A write beyond the file size limit shall fail like one to a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
}

void check_signals() {
  if (caught != 0) throw Interrupted{caught};
}

}  // namespace pack
