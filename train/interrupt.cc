#include "train/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <cstring>

#include "io/write.h"
#include "train/run/run_lock.h"

namespace fovea::train {
namespace {

// A signal handler may use only these variables and functions that are safe in a handler.
std::atomic<int> asked = 0, saving = 0, exiting = 0;
std::atomic<const char*> last_words = nullptr;
static_assert(std::atomic<int>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

void note(int signal) {
  if (exiting > 0 && saving == 0) {
    const char* const words = last_words;
    const char* const text = words ? words : "fovea: stopped\n";
    [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, std::strlen(text));
    remove_lock_files();
    io::remove_unfinished();
    ::_exit(128 + signal);
  }
  asked = signal;
}

}  // namespace

Interrupted::Interrupted(const std::string& what)
    : std::runtime_error(what), signal(asked != 0 ? asked.load() : SIGINT) {}

InterruptGuard::InterruptGuard() {
  asked = 0;
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptGuard::~InterruptGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
}

SavesWhenAsked::SavesWhenAsked() { ++saving; }
SavesWhenAsked::~SavesWhenAsked() { --saving; }
ExitWhenAsked::ExitWhenAsked() { ++exiting; }
ExitWhenAsked::~ExitWhenAsked() { --exiting; }
void say_when_stopped(const char* words) { last_words = words; }

bool interrupted() { return asked != 0; }

void stop_if_interrupted(const std::string& where) {
  if (interrupted()) throw Interrupted("stopped " + where);
}

}  // namespace fovea::train
