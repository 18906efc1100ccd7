#include "bench/timing.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

namespace fovea::bench {
namespace {

double quantile(std::vector<double>& values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const size_t low = static_cast<size_t>(at);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

// Reads and writes twice the last cache level, or 64 MB where the system does not say.
void sweep_caches() {
  static std::vector<char> buffer = [] {
    long size = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE
    size = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return std::vector<char>(std::clamp<size_t>(2 * std::max(size, 0L), 64 << 20, 1 << 30));
  }();
  for (size_t i = 0; i < buffer.size(); i += 64) ++buffer[i];
}

}  // namespace

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> values) { return values.empty() ? NAN : quantile(values, 0.5); }

double spread(std::vector<double> values) {
  if (values.empty()) return NAN;
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / quantile(values, 0.5);
}

double paired_ratio(const std::vector<double>& numerator, const std::vector<double>& denominator) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(numerator.size(), denominator.size()); ++i) {
    ratios.push_back(numerator[i] / denominator[i]);
  }
  return median(std::move(ratios));
}

Timed take_turns(const std::vector<std::function<void()>>& contenders,
                 const std::function<double(double)>& gauge, const Protocol& protocol) {
  const size_t n = contenders.size();
  const bool cold = protocol.cache == Cache::kCold;
  std::vector<size_t> repeats(n, 1);
  double gauged = 0;
  for (size_t c = 0; c < n; ++c) {
    contenders[c]();
    if (cold) continue;
    const double start = seconds_now();
    contenders[c]();
    const double once = std::max(seconds_now() - start, 1e-7);
    repeats[c] = static_cast<size_t>(std::max(1.0, std::ceil(protocol.shortest_sample / once)));
    if (c == 0) gauged = std::min(once * static_cast<double>(repeats[c]), protocol.longest_gauge);
  }

  Timed timed;
  timed.seconds.resize(n);
  const auto sample = [&](size_t c) {
    if (cold) sweep_caches();
    if (repeats[c] > 1) contenders[c]();  // what ran before has taken the caches
    const double start = seconds_now();
    for (size_t i = 0; i < repeats[c]; ++i) contenders[c]();
    timed.seconds[c].push_back((seconds_now() - start) / static_cast<double>(repeats[c]));
  };
  const double start = seconds_now();
  for (size_t round = 0; round < protocol.maximum_rounds; ++round) {
    const double gone = seconds_now() - start;
    if (round >= protocol.minimum_rounds && gone > protocol.seconds) break;
    if (round >= protocol.fewest_rounds && gone > protocol.patience) break;
    // There and back, from another one every other round: each follows every other, which leaves the
    // caches as it likes.
    for (size_t i = 0; i < n; ++i) {
      sample((round / 2 + (round % 2 ? n - 1 - i : i)) % n);
      if (i == 0 && gauge) timed.gauge.push_back(gauge(gauged));
    }
  }
  return timed;
}

}  // namespace fovea::bench
