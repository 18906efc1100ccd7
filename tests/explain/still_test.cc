#include "explain/still.h"

#include <gtest/gtest.h>

#include "fovea/error.h"
#include "tests/explain/count.h"

namespace fovea::explain {
namespace {

Explanation alignment() {
  Explanation e;
  e.system = "bahdanau";
  e.title = "<i>Who</i>";
  e.score = "additive";
  e.normaliser = "softmax";
  e.queries = {{.text = "ein"}, {.text = "Hund"}};
  e.keys = {{.text = "a"}, {.text = "dog"}};
  e.maps = {{.dense = {0.9f, 0.1f, 0, 1}}};
  e.truth = Truth{.label = "gold", .sure = {{0, 0, 1}, {1, 1, 1}}};
  return e;
}

TEST(Still, DrawsEveryWeightAndOutlinesTheTruth) {
  const std::string svg = still_svg({alignment(), alignment()});
  EXPECT_EQ(count(svg, "bahdanau: additive"), 2u);
  EXPECT_EQ(count(svg, "class=\"truth\""), 4u);
  EXPECT_NE(svg.find("Hund → dog: 1<"), std::string::npos);
  EXPECT_NE(svg.find("&lt;i&gt;Who"), std::string::npos);
  EXPECT_EQ(svg.find("<i>"), std::string::npos);
}

TEST(Still, TakesTheMapThePickerStandsOn) {
  Explanation e = alignment();
  e.heads = {"head", {"1", "2"}, 1};
  EXPECT_FALSE(is_still(e));
  e.maps.push_back({.head = 1, .dense = {0, 1, 0.25f, 0.75f}});
  EXPECT_NE(still_svg({e}).find("ein → dog: 1<"), std::string::npos);
}

TEST(Still, RefusesWhatCannotBeRead) {
  Explanation e = alignment();
  e.truth.reset();
  EXPECT_FALSE(is_still(e));
  e.title = "red \x1b[31m";
  try {
    still_svg({e});
    FAIL() << "expected an error";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("panels: 'red \\x1b[31m'"), std::string::npos)
        << error.what();
  }
  e = alignment();
  e.view = View::kBag;
  EXPECT_FALSE(is_still(e));
  e = alignment();
  e.keys.resize(17);
  e.maps[0].dense.resize(34);
  EXPECT_FALSE(is_still(e));
}

}  // namespace
}  // namespace fovea::explain
