#include "explain/thumbnail.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/explain/count.h"

namespace fovea::explain {
namespace {

TEST(Thumbnail, EveryWeightThatIsNotZeroIsACell) {
  Explanation e;
  e.queries = {{.text = "a"}, {.text = "b"}};
  e.keys = {{.text = "c"}, {.text = "d"}, {.text = "e"}};
  e.maps = {{.dense = {1, 0, 0, 0, 0.5f, 0.5f}}};
  EXPECT_EQ(count(thumbnail_svg(e), "z"), 3u);
  e.maps = {{.links = {{.query = 1, .key = 2, .weight = 0.2f}}}};
  EXPECT_EQ(count(thumbnail_svg(e), "z"), 1u);
}

TEST(Thumbnail, CellsOfAboutTheSameWeightAreOnePath) {
  Explanation e;
  e.queries.resize(20);
  e.keys.resize(36);
  std::vector<float> weights(720);
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<float>(i + 1) / 720;
  e.maps = {{.dense = weights}};
  EXPECT_EQ(count(thumbnail_svg(e), "z"), 718u) << "two weigh next to nothing";
  EXPECT_LE(count(thumbnail_svg(e), "<path"), 25u);
}

TEST(Thumbnail, AMillionCellsAreFewAndALonePeakIsAmongThem) {
  Explanation e;
  e.queries.resize(1000);
  e.keys.resize(1000);
  e.maps = {{.dense = std::vector<float>(1'000'000, 0)}};
  e.maps[0].dense[123'456] = 1;
  EXPECT_EQ(count(thumbnail_svg(e), "z"), 1u);
  e.maps[0].dense.assign(1'000'000, 1);
  EXPECT_LT(thumbnail_svg(e).size(), 25'000u);
}

TEST(Thumbnail, CurvesWithGapsAndLogarithmsGiveFiniteNumbers) {
  Explanation e;
  e.view = View::kCurve;
  const double gap = std::numeric_limits<double>::quiet_NaN();
  e.plots = {{.x_label = "x",
              .y_label = "y",
              .log_x = true,
              .log_y = true,
              .curves = {{.x = {0, 1, 10, 100}, .y = {1, gap, 2, 0}},
                         {.kind = Curve::Kind::kBars, .x = {1}, .y = {1}}}}};
  const std::string drawn = thumbnail_svg(e);
  EXPECT_NE(drawn.find("<path"), std::string::npos);
  EXPECT_EQ(drawn.find("nan"), std::string::npos);
  EXPECT_EQ(drawn.find("inf"), std::string::npos);
}

TEST(Thumbnail, ATreeIsNodesAndBranches) {
  Explanation e;
  e.view = View::kTree;
  e.tree = {{.text = "<s>"}, {.parent = 0, .text = "a"}, {.parent = 0, .text = "b"}};
  EXPECT_EQ(count(thumbnail_svg(e), "class=\"trace\""), 2u);
  EXPECT_EQ(count(thumbnail_svg(e), "z"), 3u);
}

TEST(Thumbnail, NothingToDrawIsNoPicture) { EXPECT_EQ(thumbnail_svg({}), ""); }

}  // namespace
}  // namespace fovea::explain
