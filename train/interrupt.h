// Ctrl-C asks a run to save and stop; a second one ends the process at once.
#pragma once

#include <csignal>
#include <stdexcept>
#include <string>

namespace fovea::train {

// The run stopped because it was asked to, and what is needed to continue is on the disk.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// While one lives, SIGINT and SIGTERM are noted instead of ending the process.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  struct sigaction before_interrupt_, before_terminate_;
};

bool interrupted();

}  // namespace fovea::train
