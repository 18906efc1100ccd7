// The executable sets the environment and then loads the program. The program is a library, because
// the libraries that it uses read the environment when they are loaded.
#include <dlfcn.h>
#include <sys/resource.h>

#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <new>

#include "cli/program.h"

namespace {

// libtorch computes with the threads of libgomp. By default an idle one spins for milliseconds
// before it sleeps. Beside other busy programs, that time is taken from threads that have work.
// A value that the user has set is kept.
void let_idle_threads_sleep() {
  if (!std::getenv("GOMP_SPINCOUNT")) setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
}

// No code can catch what a library throws while it is loaded. The cause is nearly always that
// there is no memory.
[[noreturn]] void end_loading() {
  try {
    if (const std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    std::cerr << "fovea: libtorch could not be loaded\n";
  } catch (const std::bad_alloc&) {
    std::cerr << "fovea: not enough memory to load libtorch\n";
  } catch (const std::exception& error) {
    std::cerr << "fovea: libtorch could not be loaded: " << error.what() << '\n';
  } catch (...) {
    std::cerr << "fovea: libtorch could not be loaded\n";
  }
  std::_Exit(1);
}

// Libraries that are loaded take 160 KiB of the stack before there is a command. One that is smaller
// ends the process without a word.
bool has_stack() {
  constexpr rlim_t kLeast = 256 << 10;
  rlimit stack{};
  if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur >= kLeast) return true;
  std::cerr << "fovea: a stack of " << stack.rlim_cur / 1024 << " KiB (ulimit -s), expected "
            << kLeast / 1024 << " or more\n";
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  // MKL, which libtorch brings along, ends a process whose working directory was removed.
  std::error_code gone;
  [[maybe_unused]] const std::filesystem::path here = std::filesystem::current_path(gone);
  if (gone) {
    std::cerr << "fovea: the working directory does not exist any more; cd to one that does\n";
    return 1;
  }
  if (!has_stack()) return 1;
  let_idle_threads_sleep();
  const std::terminate_handler before = std::set_terminate(end_loading);
  void* const library = dlopen(FOVEA_PROGRAM, RTLD_NOW | RTLD_GLOBAL);
  std::set_terminate(before);
  void* const entry = library ? dlsym(library, "fovea_program") : nullptr;
  if (!entry) {
    std::cerr << "fovea: " << dlerror() << '\n';
    return 1;
  }
  return reinterpret_cast<decltype(&fovea_program)>(entry)(argc, argv);
}
