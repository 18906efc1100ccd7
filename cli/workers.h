// `--workers N`: N ranks on this machine, as torchrun would start them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/progress.h"
#include "train/ranks/place.h"

namespace fovea::cli {

inline constexpr int64_t kMostWorkers = 256;

struct Workers {
  int count = 1;
  int restarts = 0;                      // how often all are started again after one was lost
  std::vector<std::string> others = {};  // arguments of all ranks but the first
  std::string stopped = "stopped";       // the message after Ctrl-C
};

// Runs this program with `arguments` as `count` ranks. What rank 0 prints is printed. Returns the exit
// code: that of the rank whose failure was the first cause.
int run_workers(const Workers& workers, const std::vector<std::string>& arguments,
                train::Progress& progress);

inline constexpr double kTimeoutSeconds = 120;
void add_timeout(CLI::App& app, double& seconds);

// --workers and --timeout of verbs whose work ranks share.
struct RankOptions {
  int workers = 0;  // 0: this process does not start any
  double timeout = kTimeoutSeconds;
};
void add_ranks(CLI::App& app, RankOptions& options);
// The rank that a launcher made of this process; none where it is alone. UsageError where it is also
// asked to start ranks itself.
std::optional<train::Place> place_of(int workers);

}  // namespace fovea::cli
