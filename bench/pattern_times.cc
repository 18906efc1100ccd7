// Time of each sparse pattern against the number of positions, and the slope of the logarithms.
//
//   pattern_times [rounds=5] [most=16384]
//
// One head of width 64, forward and backward, one thread, stride √n. Seconds of the processor,
// which neighbours on a busy machine change little; the patterns take turns, and the fastest round
// counts. The slope expected is that of the number of pairs.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <string>

#include "systems/sparse_patterns/pattern.h"

namespace fovea::bench {
namespace {

using namespace systems::sparse_patterns;

constexpr int64_t kLengths[] = {196, 784, 3136, 16384};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

Pattern pattern_of(const std::string& name, int64_t n) {
  const auto stride = static_cast<int64_t>(std::lround(std::sqrt(n)));
  return {.kind = kKinds.of(name), .stride = stride, .summary = 1, .global = stride};
}

double milliseconds(const Pattern& pattern, int64_t n) {
  const auto drawn = [&] { return torch::randn({1, 1, n, 64}).requires_grad_(); };
  const torch::Tensor query = drawn(), key = drawn(), value = drawn(),
                      along = torch::ones({1, 1, n, 64});
  const int repeats = n < 1000 ? 20 : 1;
  const double start = processor_seconds();
  for (int i = 0; i < repeats; ++i)
    attend_pattern(query, key, value, pattern, Part::kWhole).backward(along);
  return 1e3 * (processor_seconds() - start) / repeats;
}

double slope(double first, double last, double from, double to) {
  return std::log(last / first) / std::log(to / from);
}

int run(int rounds, int64_t most) {
  at::set_num_threads(1);
  std::map<std::string, std::map<int64_t, double>> fastest, pairs;
  for (int round = 0; round <= rounds; ++round)  // the first warms up
    for (const int64_t n : kLengths)
      for (const std::string& name : kKinds.names()) {
        if (n > most) continue;
        const Pattern pattern = pattern_of(name, n);
        const double now = milliseconds(pattern, n);
        if (round == 0) pairs[name][n] = static_cast<double>(pairs_of(pattern, Part::kWhole, n));
        if (round == 0) continue;
        double& best = fastest[name].try_emplace(n, now).first->second;
        best = std::min(best, now);
      }
  fmt::print("| pattern |");
  for (const auto& [n, time] : fastest["dense"]) fmt::print(" n = {} |", n);
  fmt::print(" slope | slope of the pairs |\n|---|");
  for (size_t i = 0; i < fastest["dense"].size() + 2; ++i) fmt::print("---|");
  fmt::print("\n");
  for (const std::string& name : kKinds.names()) {
    fmt::print("| {} |", name);
    for (const auto& [n, time] : fastest[name]) fmt::print(" {:.2f} ms |", time);
    const auto of = [&](const std::map<int64_t, double>& row) {
      const auto second = std::next(row.begin()), last = std::prev(row.end());
      return slope(second->second, last->second, static_cast<double>(second->first),
                   static_cast<double>(last->first));
    };
    fmt::print(" {:.2f} | {:.2f} |\n", of(fastest[name]), of(pairs[name]));
  }
  return 0;
}

}  // namespace
}  // namespace fovea::bench

int main(int count, char** arguments) {
  int64_t rounds = 5, most = 16384;
  for (int i = 1; i < count; ++i) {
    const std::string given = arguments[i];
    if (given.starts_with("rounds=")) rounds = std::max(1, std::atoi(given.c_str() + 7));
    if (given.starts_with("most=")) most = std::max(784, std::atoi(given.c_str() + 5));
  }
  return fovea::bench::run(static_cast<int>(rounds), most);
}
