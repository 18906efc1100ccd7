// The engine's own threads beside other busy ones: a comparison of times.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

#include "fovea/engine.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

// More workers than the machine has cores, before the pool is made.
[[maybe_unused]] const int kAsked = setenv("FOVEA_THREADS", "8", 1);

// One row against many keys, a few hundred microseconds of work.
cases::Built decode() { return cases::build({.shape = {1, 8, 8, 1, 4096, 64, 64}}); }

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Each call has a barrier or two; were one to wait for a turn on a core, it would take milliseconds.
TEST(Pool, MoreWorkersThanCoresTakeLittleLongerThanOne) {
  cases::Built built = decode();
  const auto calls = [&](const engine::Parallel& parallel) {
    return seconds_of([&] {
      for (int i = 0; i < 50; ++i) engine::forward(built.problem, built.result, parallel);
    });
  };
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (unsigned i = 0; i < std::thread::hardware_concurrency() + 1; ++i)
    busy.emplace_back([&] {
      while (!stop.load(std::memory_order_relaxed)) {
      }
    });
  std::vector<double> ratios;
  calls(engine::default_parallel());
  for (int round = 0; round < 5; ++round) {
    const double alone = calls(serial());
    ratios.push_back(calls(engine::default_parallel()) / alone);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
  std::sort(ratios.begin(), ratios.end());
  EXPECT_LT(ratios[2], 4) << "ratios from " << ratios.front() << " to " << ratios.back();
}

}  // namespace
}  // namespace fovea
