// Training steps timed in turns, so that what else the machine does falls on all of them.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace fovea::test {

using Step = std::function<torch::Tensor()>;  // forward; backward is from the mean square of it

// The median seconds of each.
inline std::vector<double> medians(const std::vector<Step>& steps, int rounds) {
  std::vector<std::vector<double>> seconds(steps.size());
  for (int round = -1; round < rounds; ++round)
    for (size_t i = 0; i < steps.size(); ++i) {
      const auto start = std::chrono::steady_clock::now();
      steps[i]().square().mean().backward();
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      if (round >= 0) seconds[i].push_back(taken.count());
    }
  std::vector<double> out;
  for (auto& one : seconds) {
    std::sort(one.begin(), one.end());
    out.push_back(one[one.size() / 2]);
  }
  return out;
}

}  // namespace fovea::test
