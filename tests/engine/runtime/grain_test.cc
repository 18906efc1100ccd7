// How many workers a call asks for: none for a small one, and no more than its work is worth.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/runtime/parallel.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using engine::Parallel;

// The largest number of workers that `call` asks for; 0 where it runs on its caller alone.
size_t workers_asked_for(const std::function<void(const Parallel&)>& call) {
  size_t most = 0;
  call({.workers = 64, .run = [&](size_t n, const std::function<void(size_t)>& body) {
          most = std::max(most, n);
          for (size_t i = 0; i < n; ++i) body(i);
        }});
  return most;
}

size_t forward_workers(const cases::Shape& shape) {
  cases::Built built = cases::build({.shape = shape});
  return workers_asked_for(
      [&](const Parallel& p) { engine::forward(built.problem, built.result, p); });
}
size_t backward_workers(const cases::Shape& shape) {
  cases::Built built = cases::build({.shape = shape});
  run_forward(built);
  return workers_asked_for([&](const Parallel& p) {
    engine::backward(built.problem, built.result, built.gradients, p);
  });
}

TEST(Grain, SmallCallsRunOnTheirCallerAlone) {
  EXPECT_EQ(forward_workers({1, 8, 8, 1, 512, 64, 64}), 0u);
  EXPECT_EQ(forward_workers({1, 8, 8, 16, 16, 64, 64}), 0u);
  EXPECT_EQ(forward_workers({8, 2, 2, 9, 9, 16, 16}), 0u);
  EXPECT_EQ(backward_workers({1, 8, 8, 16, 16, 64, 64}), 0u);
}

TEST(Grain, LargerOnesAskForOneWorkerEachGrain) {
  const cases::Shape shape{1, 32, 32, 64, 64, 64, 64};  // 2^17 pairs of 144: 36 grains
  EXPECT_EQ(forward_workers(shape), 32u) << "a head each";
  EXPECT_EQ(forward_workers({1, 32, 32, 40, 40, 64, 64}), 14u);
  EXPECT_GT(backward_workers(shape), 32u - 1);
  EXPECT_GT(forward_workers({1, 8, 8, 1, 8192, 64, 64}), 8u);
}

TEST(Grain, CountsNoMoreWorkersThanGiven) {
  const Parallel given{.workers = 3, .run = [](size_t, const std::function<void(size_t)>&) {}};
  EXPECT_EQ(engine::worth(given, 1e12).workers, 3u);
  EXPECT_EQ(engine::worth(given, 1.9 * engine::kGrain).workers, 1u);
  EXPECT_EQ(engine::worth(given, 2.0 * engine::kGrain).workers, 2u);
  EXPECT_EQ(engine::worth(Parallel{}, 1e12).workers, 1u);
}

}  // namespace
}  // namespace fovea
