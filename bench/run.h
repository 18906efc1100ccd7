// A whole run: memory, roofs, then every row, each against its peers and its roof.
#pragma once

#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "bench/roofs/machine.h"
#include "bench/rows/row.h"
#include "bench/timing.h"

namespace fovea::bench {

struct Options {
  std::string filter = "*";  // glob on row names
  std::string simd_target;   // held for the whole run; empty: the machine's best
  int threads = 0;           // of both sides; 0: as many as the process may use
  bool memory = true;        // measure peak extra memory, each row in a child process
  Protocol protocol;
};

struct Judged {
  std::string figure;
  std::optional<Figure::Verdict> verdict;  // nothing: a row it needs was not part of the run
};

struct RowReport {
  Measured measured;
  Pass pass;
  Work work;
  std::string simd_target;
  std::optional<Series> series;
  std::vector<Judged> figures;
};

struct Report {
  Machine machine;
  int threads = 0;
  bool two_wide_units = false;
  std::string cache;  // "warm" or "cold"
  std::map<std::string, double>
      roofs;  // in 1e9 a second, by name; of the target the run is held to
  std::vector<RowReport> rows;
  size_t met() const;
  size_t missed() const;
};

// Rows whose name matches the glob.
std::vector<Row> select(std::vector<Row> rows, const std::string& glob);

// Throws std::runtime_error naming the row when ours and a peer disagree. `progress` is told each
// row's name. Must run before the process has started threads where `options.memory` (a child
// inherits none).
Report run(const std::vector<Row>& rows, const Options& options,
           const std::function<void(const std::string&)>& progress);

}  // namespace fovea::bench
