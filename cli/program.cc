#include "cli/program.h"

#include <ATen/Parallel.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <string_view>

#include "cli/command.h"
#include "cli/output/standard_streams.h"
#include "cli/version.h"
#include "engine/runtime/cores.h"
#include "io/write.h"
#include "train/failure.h"
#include "train/run/run_lock.h"

namespace {

// libtorch counts the cores of the machine; a control group may allow fewer. A number that the user
// gives is kept.
void count_quotas() {
  if (std::getenv("OMP_NUM_THREADS") || std::getenv("MKL_NUM_THREADS")) return;
  const int cores = static_cast<int>(fovea::engine::usable_cores());
  if (cores < at::get_num_threads()) at::set_num_threads(cores);
}

// std::cerr may need memory to say that there is none.
void say(std::string_view words) {
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, words.data(), words.size());
}

void leave_nothing() {
  fovea::train::remove_lock_files();
  fovea::io::remove_unfinished();
}

// A destructor of the JSON library allocates memory. If there is none, what it throws cannot be
// caught.
[[noreturn]] void end_without_memory() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::bad_alloc&) {
    say("fovea: not enough memory\n");
    leave_nothing();
    std::_Exit(fovea::cli::kFailed);
  } catch (...) {
  }
  std::abort();
}

// libgomp, which libtorch uses, ends the process with its own message if it cannot start a thread.
bool at_work = true;
void say_who_ended_it() {
  if (!at_work) return;
  say("fovea: ended by a library, for the reason above; --threads 1 needs less memory\n");
  leave_nothing();
}

// MKL, which libtorch brings along, does not look at what it gets when it maps memory: where the
// address space is limited, it ends the process by a signal. Any other fault stays one.
void end_at_the_limit(int) {
  say("fovea: not enough memory: the address space is limited (ulimit -v)\n");
  leave_nothing();
  std::_Exit(fovea::cli::kFailed);
}

void name_the_limit() {
  rlimit space{};
  if (getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur == RLIM_INFINITY) return;
  struct sigaction action {};
  action.sa_handler = end_at_the_limit;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGSEGV, &action, nullptr);
}

int run_command(int argc, char** argv) {
  using namespace fovea::cli;
  try {
    const StandardStreams streams;
    count_quotas();
    return run({.verbs = verbs(), .version = version, .out = std::cout, .err = std::cerr}, argc,
               argv);
  } catch (const std::exception& error) {  // before there is a command: no memory
    std::cerr << "fovea: " << fovea::train::words_of(error) << '\n';
    return kFailed;
  }
}

}  // namespace

int fovea_program(int argc, char** argv) {
  std::set_terminate(end_without_memory);
  std::atexit(say_who_ended_it);
  std::ios::sync_with_stdio(false);
  // Then a file larger than the shell's limit (ulimit -f) is a write error, like a full disk.
  std::signal(SIGXFSZ, SIG_IGN);
  name_the_limit();
  const int code = run_command(argc, argv);
  at_work = false;
  return code;
}
