#include "bench/report/figure.h"

#include <gtest/gtest.h>

namespace fovea::bench {
namespace {

Measured row(double times_peer, double percent_roof) {
  Measured m;
  m.best_peer = "sdpa";
  m.times_peer = times_peer;
  m.percent_roof = percent_roof;
  return m;
}

TEST(Figure, TimesPeer) {
  EXPECT_TRUE(times_peer_at_least(1.25).judge(row(1.25, 0), {})->met);
  EXPECT_FALSE(times_peer_at_least(1.25).judge(row(1.24, 0), {})->met);
  EXPECT_FALSE(times_peer_at_least(1.25).judge(Measured{}, {}));  // no peer: no verdict
}

TEST(Figure, RoofDependsOnTheUnits) {
  const Figure figure = percent_roof_at_least(87, 80);
  EXPECT_FALSE(figure.judge(row(0, 83), {})->met);
  EXPECT_TRUE(figure.judge(row(0, 83), {.rows = {}, .two_wide_units = true})->met);
}

TEST(Figure, RelativeToAnotherRow) {
  Context context;
  const Figure figure = times_peer_of_row_at_least(1.2, "dense");
  EXPECT_FALSE(figure.judge(row(2.0, 0), context));
  context.rows["dense"] = row(1.5, 0);
  EXPECT_TRUE(figure.judge(row(1.8, 0), context)->met);
  EXPECT_FALSE(figure.judge(row(1.7, 0), context)->met);
}

TEST(Figure, YardsticksAndProportion) {
  Measured m;
  m.times["plain"] = 1.1;
  m.times_per_pair["half"] = 0.8;
  EXPECT_TRUE(times_yardstick_at_most(1.12, "plain").judge(m, {})->met);
  EXPECT_FALSE(times_yardstick_at_most(1.05, "plain").judge(m, {})->met);
  EXPECT_FALSE(times_yardstick_at_most(1.05, "other").judge(m, {}));
  m.times["sort"] = 1.0 / 32;
  EXPECT_TRUE(times_this_peer_at_least(32, "sort").judge(m, {})->met);
  EXPECT_FALSE(times_this_peer_at_least(33, "sort").judge(m, {})->met);
  EXPECT_FALSE(times_this_peer_at_least(1, "other").judge(m, {}));
  EXPECT_FALSE(proportional_to("half", 0.15)
                   .judge(m, {})
                   ->met);  // faster than in proportion is not proportional either
  m.times_per_pair["half"] = 1.1;
  EXPECT_TRUE(proportional_to("half", 0.15).judge(m, {})->met);
  EXPECT_TRUE(time_per_pair_at_most(1.15, "half").judge(m, {})->met);
}

TEST(Figure, NoCliffAgainstTheWorstNeighbour) {
  Context context;
  context.rows["a"] = row(0, 80);
  context.rows["b"] = row(0, 100);
  const Figure figure = no_cliff(0.75, {"a", "b"});
  EXPECT_TRUE(figure.judge(row(0, 75), context)->met);
  EXPECT_FALSE(figure.judge(row(0, 74), context)->met);
  EXPECT_FALSE(no_cliff(0.75, {"a", "absent"}).judge(row(0, 75), context));
}

TEST(Figure, Memory) {
  Measured m;
  m.tensor_bytes = 100;
  EXPECT_FALSE(memory_at_most(4).judge(m, {}));
  m.memory = 400;
  EXPECT_TRUE(memory_at_most(4).judge(m, {})->met);
  m.memory = 401;
  EXPECT_FALSE(memory_at_most(4).judge(m, {})->met);
  EXPECT_TRUE(memory_bytes_at_most(401, "").judge(m, {})->met);
}

}  // namespace
}  // namespace fovea::bench
