#include "bench/timing.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <thread>

namespace fovea::bench {
namespace {

TEST(Statistics, MedianAndSpread) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(spread({1, 2, 3, 4, 5}), 1.0 / 3);
  EXPECT_EQ(spread({2, 2, 2}), 0);
}

TEST(Statistics, RatiosAreTakenWithinARound) {
  // Both sides ten times slower in the second round: a ratio of medians of four rounds would not
  // be 2.
  EXPECT_EQ(paired_ratio({2, 20, 2}, {1, 10, 1}), 2);
}

TEST(TakeTurns, InterleavesAndChangesWhoGoesFirst) {
  std::string order;
  const Protocol protocol{
      .minimum_rounds = 4, .maximum_rounds = 4, .seconds = 0, .shortest_sample = 0};
  const Timed timed = take_turns(
      {[&] { order += 'a'; }, [&] { order += 'b'; }},
      [&](double) {
        order += '|';
        return 7.0;
      },
      protocol);
  EXPECT_EQ(order,
            "aabb"
            "a|b"
            "b|a"
            "b|a"
            "a|b");  // two runs each to warm up and to gauge
  ASSERT_EQ(timed.seconds.size(), 2u);
  EXPECT_EQ(timed.seconds[0].size(), 4u);
  EXPECT_EQ(timed.seconds[1].size(), 4u);
  EXPECT_EQ(timed.gauge, std::vector<double>(4, 7.0));
}

// What ran before leaves the caches as it likes: that must not be the same one always.
TEST(TakeTurns, EachFollowsEveryOther) {
  std::string order;
  take_turns({[&] { order += 'a'; }, [&] { order += 'b'; }, [&] { order += 'c'; }}, {},
             {.minimum_rounds = 60, .maximum_rounds = 60, .seconds = 0, .shortest_sample = 0});
  std::map<std::string, int> pairs;
  for (size_t n = 0; n + 1 < order.size(); ++n) ++pairs[order.substr(n, 2)];
  for (const char* pair : {"ab", "ac", "ba", "bc", "ca", "cb"}) {
    EXPECT_GE(pairs[pair], 20) << pair;  // of 180; a third more or less from round to round
    EXPECT_LE(pairs[pair], 31) << pair;
  }
}

TEST(TakeTurns, GaugesForAsLongAsTheFirstContenderRuns) {
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); };
  std::vector<double> asked;
  const auto gauge = [&](double seconds) {
    asked.push_back(seconds);
    return 1.0;
  };
  take_turns({nap, [] {}}, gauge, {.minimum_rounds = 2, .maximum_rounds = 2, .seconds = 0});
  ASSERT_EQ(asked.size(), 2u);
  EXPECT_GE(asked[0], 20e-3);
  EXPECT_EQ(asked[0], asked[1]);
  asked.clear();
  take_turns({nap}, gauge,
             {.minimum_rounds = 1, .maximum_rounds = 1, .seconds = 0, .longest_gauge = 5e-3});
  EXPECT_EQ(asked, std::vector<double>{5e-3});
}

TEST(TakeTurns, RunsAtLeastTheMinimumAndThenUntilTheTimeIsUp) {
  const auto nap = [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); };
  const Timed few =
      take_turns({nap}, {}, {.minimum_rounds = 3, .maximum_rounds = 50, .seconds = 0});
  EXPECT_EQ(few.seconds[0].size(), 3u);
  EXPECT_GE(median(few.seconds[0]), 5e-3);
  const Timed more =
      take_turns({nap}, {}, {.minimum_rounds = 1, .maximum_rounds = 50, .seconds = 0.05});
  EXPECT_GT(more.seconds[0].size(), 1u);
  EXPECT_LT(more.seconds[0].size(), 12u);
}

TEST(TakeTurns, DoesNotCountTheFirstOfShortRuns) {
  char last = ' ';
  const auto after_another = [&] {
    if (last != 'a') std::this_thread::sleep_for(std::chrono::milliseconds(20));
    last = 'a';
  };
  const Timed timed =
      take_turns({after_another, [&] { last = 'b'; }}, {},
                 {.minimum_rounds = 3, .maximum_rounds = 3, .seconds = 0, .shortest_sample = 1e-3});
  EXPECT_LT(median(timed.seconds[0]), 1e-3);
}

TEST(TakeTurns, RepeatsWhatIsTooShortToTime) {
  int runs = 0;
  take_turns({[&] { ++runs; }}, {},
             {.minimum_rounds = 1, .maximum_rounds = 1, .seconds = 0, .shortest_sample = 1e-4});
  EXPECT_GT(runs, 100);
  runs = 0;
  take_turns({[&] { ++runs; }}, {},
             {.minimum_rounds = 2, .maximum_rounds = 2, .seconds = 0, .cache = Cache::kCold});
  EXPECT_EQ(runs, 3);  // cold: one to warm the pages, then one a round
}

}  // namespace
}  // namespace fovea::bench
