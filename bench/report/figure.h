// A figure to reach: a number a row must show, and whether it did.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fovea::bench {

// What was measured for a row. Times are medians; ratios are medians of ratios taken within a
// round.
struct Measured {
  std::string name;
  std::string roof;
  double milliseconds = 0, spread = 0;
  double gflops = 0, gbps = 0;
  size_t rounds = 0;
  double percent_roof = 0;
  std::string best_peer;                         // empty: none
  double times_peer = 0;                         // best peer's time / ours
  std::map<std::string, double> other_ms;        // peers and yardsticks
  std::map<std::string, double> times;           // our time / theirs, peers and yardsticks
  std::map<std::string, double> times_per_pair;  // the same, each divided by its pairs
  double largest_error = 0;                      // against the peers, relative
  std::optional<double> memory, peer_memory;     // peak extra bytes
  double tensor_bytes = 0;
};

struct Context {
  std::map<std::string, Measured> rows;
  bool two_wide_units = false;  // the core has two 512-bit multiply-add units
};

struct Figure {
  std::string text;  // "x_peer >= 1.25"
  // The number to judge and whether it is good enough; nothing when a row it needs was not
  // measured.
  struct Verdict {
    double value;
    bool met;
  };
  std::function<std::optional<Verdict>(const Measured&, const Context&)> judge;
};

Figure times_peer_at_least(double bound);
// Against one peer by name, where the figure was given for that form and others are faster.
Figure times_this_peer_at_least(double bound, const std::string& peer);
// `two_units` applies where the core has two 512-bit multiply-add units.
Figure percent_roof_at_least(double bound, double two_units);
Figure percent_roof_at_least(double bound);
// x_peer at least `factor` times the x_peer of another row.
Figure times_peer_of_row_at_least(double factor, const std::string& row);
// Our time at most `bound` times a yardstick's.
Figure times_yardstick_at_most(double bound, const std::string& yardstick);
// Time a pair within `tolerance` of a yardstick's, either way.
Figure proportional_to(const std::string& yardstick, double tolerance);
Figure time_per_pair_at_most(double bound, const std::string& yardstick);
// Per cent of roof at least `fraction` of each neighbour's.
Figure no_cliff(double fraction, std::vector<std::string> neighbours);
// Our time at most `bound` times another row's.
Figure times_row_at_most(double bound, const std::string& row);
// Peak extra memory at most `bound` times (query + key + value + output).
Figure memory_at_most(double bound);
// Peak extra memory at most `bytes`, said as `why`.
Figure memory_bytes_at_most(double bytes, const std::string& why);

}  // namespace fovea::bench
