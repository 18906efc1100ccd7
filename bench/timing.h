// The measuring loop: contenders take turns within one process, so that whatever disturbs one
// disturbs all.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fovea::bench {

double seconds_now();

double median(std::vector<double> values);
// Half the distance between the quartiles, relative to the median.
double spread(std::vector<double> values);
// Median over the rounds of numerator / denominator: a slow moment slows both sides of a round.
double paired_ratio(const std::vector<double>& numerator, const std::vector<double>& denominator);

enum class Cache { kWarm, kCold };

struct Protocol {
  size_t minimum_rounds = 7;
  size_t maximum_rounds = 60;
  // Where a peer takes seconds for each run, fewer rounds will do after this many seconds.
  size_t fewest_rounds = 3;
  double patience = 8;
  double seconds = 1.5;  // stop after this and minimum_rounds
  // A run shorter than this is repeated within a sample, after one that is not counted.
  double shortest_sample = 2e-3;
  double longest_gauge = 0.2;
  Cache cache = Cache::kWarm;  // kCold: caches are swept before every run, and a sample is one run
};

struct Timed {
  std::vector<std::vector<double>> seconds;  // [contender][round], of one run
  std::vector<double> gauge;                 // [round], what `gauge` returned
};

// Runs every contender once to warm up, then in rounds, changing who goes first and who follows
// whom; `gauge` (may be empty) is called once a round, in the middle, with how long a sample of the first contender took
// when warming up, at most longest_gauge.
Timed take_turns(const std::vector<std::function<void()>>& contenders,
                 const std::function<double(double seconds)>& gauge, const Protocol& protocol);

}  // namespace fovea::bench
