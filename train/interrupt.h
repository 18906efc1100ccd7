// Ctrl-C, SIGTERM and SIGHUP ask a run to save and stop; a second one ends the process at once.
#pragma once

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>

namespace fovea::train {

// The run was stopped by a signal, and all that is needed to continue is on the disk.
struct Interrupted : std::runtime_error {
  explicit Interrupted(const std::string& what);
  int signal;  // the one that asked
};

// While it exists, the three signals are recorded instead of ending the process. A signal that was
// ignored before (nohup, a shell's background job) stays ignored.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

 private:
  std::array<struct sigaction, kSignals.size()> before_;
};

// While it exists, the work soon reaches a point where it checks interrupted() and can be saved. Work
// outside of it, such as reading or evaluating, has nothing to save.
class SavesWhenAsked {
 public:
  SavesWhenAsked();
  ~SavesWhenAsked();
  SavesWhenAsked(const SavesWhenAsked&) = delete;
  SavesWhenAsked& operator=(const SavesWhenAsked&) = delete;
};

// While it exists, a signal that arrives outside of every SavesWhenAsked ends the process at once,
// with exit code 128 + its number. Only a program may use it, not a library.
class ExitWhenAsked {
 public:
  ExitWhenAsked();
  ~ExitWhenAsked();
  ExitWhenAsked(const ExitWhenAsked&) = delete;
  ExitWhenAsked& operator=(const ExitWhenAsked&) = delete;
};
// The message that is printed then, with its line feed. The text must stay valid. Null: "stopped".
void say_when_stopped(const char* words);

bool interrupted();
// Throws Interrupted if a signal was recorded.
void stop_if_interrupted(const std::string& where);

}  // namespace fovea::train
