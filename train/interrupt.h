// Ctrl-C, SIGTERM and SIGHUP ask a run to save and stop; a second one ends the process at once.
#pragma once

#include <array>
#include <csignal>
#include <stdexcept>
#include <string>

namespace fovea::train {

// The run stopped because it was asked to, and what is needed to continue is on the disk.
struct Interrupted : std::runtime_error {
  explicit Interrupted(const std::string& what);
  int signal;  // the one that asked
};

// While one lives, the three signals are noted instead of ending the process. One that was ignored
// before (nohup, a shell's background job) stays ignored.
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

// While one lives, the work comes to a point soon where it asks interrupted() and can be saved. What
// is done outside of all, reading or judging, has nothing to save.
class SavesWhenAsked {
 public:
  SavesWhenAsked();
  ~SavesWhenAsked();
  SavesWhenAsked(const SavesWhenAsked&) = delete;
  SavesWhenAsked& operator=(const SavesWhenAsked&) = delete;
};

// While one lives, a noted signal that arrives outside of every SavesWhenAsked ends the process at
// once, with exit code 128 + its number. For a program to decide; a library must not.
class ExitWhenAsked {
 public:
  ExitWhenAsked();
  ~ExitWhenAsked();
  ExitWhenAsked(const ExitWhenAsked&) = delete;
  ExitWhenAsked& operator=(const ExitWhenAsked&) = delete;
};
// What the process says then, with a line's end; it must outlive every signal. Null: "stopped".
void say_when_stopped(const char* words);

bool interrupted();
// Throws Interrupted where asked to stop.
void stop_if_interrupted(const std::string& where);

}  // namespace fovea::train
