#include "cli/program.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>

#include "cli/command.h"
#include "cli/standard_streams.h"
#include "cli/version.h"
#include "engine/runtime/cores.h"
#include "train/failure.h"

namespace {

// libtorch counts the machine's cores; a control group may pay for fewer. Who names a number gets
// it.
void count_quotas() {
  if (std::getenv("OMP_NUM_THREADS") || std::getenv("MKL_NUM_THREADS")) return;
  const int cores = static_cast<int>(fovea::engine::usable_cores());
  if (cores < at::get_num_threads()) at::set_num_threads(cores);
}

}  // namespace

int fovea_program(int argc, char** argv) {
  using namespace fovea::cli;
  std::ios::sync_with_stdio(false);
  // A file beyond the limit of the shell (ulimit -f) is then an error of its write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
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
