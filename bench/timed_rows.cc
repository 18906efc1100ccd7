// The rows of `fovea bench` on request, without peers and roofs. bench/turns.py starts two builds of
// it, and times each row of both in turns.
//
//   timed_rows --list     names of the rows that have a time
//   timed_rows            answers each line of standard input:
//     NAME                makes that row ready; answers how often a sample runs it
//     time                takes a sample; answers the processor seconds of one run
#include <ATen/Parallel.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <optional>
#include <string>

#include "bench/roofs/roof.h"
#include "bench/rows/row.h"

namespace fovea::bench {
namespace {

constexpr double kShortestSample = 5e-3;  // seconds

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

class ReadyRow {
 public:
  explicit ReadyRow(const Row& row) : held_(row.simd_target), instance_(row.make()) {
    instance_.ours.run();
    const double once = std::max(timed(1), 1e-7);
    repeats_ = static_cast<int>(std::max(1.0, std::ceil(kShortestSample / once)));
  }
  int repeats() const { return repeats_; }
  double sample() {
    instance_.ours.run();  // the other build's turn has taken the caches
    return timed(repeats_);
  }

 private:
  double timed(int repeats) {
    const double start = processor_seconds();
    for (int i = 0; i < repeats; ++i) instance_.ours.run();
    return (processor_seconds() - start) / repeats;
  }

  const HeldTarget held_;
  const Instance instance_;
  int repeats_ = 1;
};

int answer() {
  const std::vector<Row> rows = all_rows();
  std::optional<ReadyRow> ready;
  for (std::string line; std::getline(std::cin, line);) {
    if (line == "time" && ready) {
      std::printf("%.9g\n", ready->sample());
    } else {
      const auto found =
          std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.name == line; });
      if (found == rows.end()) {
        std::fprintf(stderr, "timed_rows: no row '%s'; --list names them\n", line.c_str());
        return 1;
      }
      ready.reset();
      ready.emplace(*found);
      std::printf("%d\n", ready->repeats());
    }
    std::fflush(stdout);
  }
  return 0;
}

int list() {
  for (const Row& row : all_rows())
    if (row.measure == Measure::kTimeAndMemory) std::puts(row.name.c_str());
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int argc, char** argv) {
  at::set_num_threads(1);  // so that processor time is the row's own
  return argc > 1 && std::string(argv[1]) == "--list" ? fovea::bench::list()
                                                      : fovea::bench::answer();
}
