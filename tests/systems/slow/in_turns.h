// Training steps timed in turns, by the processor's time: what else the machine does counts little.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <ctime>
#include <functional>
#include <vector>

namespace fovea::test {

using Step = std::function<torch::Tensor()>;  // forward; backward is from the mean square of it

// Of this process, all threads together.
inline double processor_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The median seconds of each.
inline std::vector<double> medians(const std::vector<Step>& steps, int rounds) {
  std::vector<std::vector<double>> seconds(steps.size());
  for (int round = -1; round < rounds; ++round)
    for (size_t i = 0; i < steps.size(); ++i) {
      const double start = processor_seconds();
      steps[i]().square().mean().backward();
      if (round >= 0) seconds[i].push_back(processor_seconds() - start);
    }
  std::vector<double> out;
  for (auto& one : seconds) {
    std::sort(one.begin(), one.end());
    out.push_back(one[one.size() / 2]);
  }
  return out;
}

}  // namespace fovea::test
