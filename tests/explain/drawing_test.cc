#include "explain/drawing/drawing.h"

#include <gtest/gtest.h>

#include "tests/explain/count.h"

namespace fovea::explain {
namespace {

Explanation one_query() {
  Explanation e;
  e.title = "Who did what";
  e.view = View::kBipartite;
  e.score = "scaled dot";
  e.normaliser = "softmax";
  e.queries = {{.text = "?"}};
  e.keys = {{.text = "cat"}, {.text = "sees"}};
  e.heads = {"head", {"1 (who)", "2 (did what)"}};
  e.maps = {{.head = 0, .dense = {1, 0}}, {.head = 1, .dense = {0.25f, 0.75f}}};
  return e;
}

TEST(Drawing, OneQueryHasARowForEachHead) {
  const std::string svg = picture_svg(one_query());
  EXPECT_NE(svg.find("head 1 (who)"), std::string::npos);
  EXPECT_NE(svg.find("head 2 (did what)"), std::string::npos);
}

TEST(Drawing, ManyQueriesAreDrawnAsThePickerStands) {
  Explanation e = one_query();
  e.queries.push_back({.text = "!"});
  e.maps = {{.head = 0, .dense = {1, 0, 0, 1}}, {.head = 1, .dense = {0, 1, 1, 0}}};
  EXPECT_EQ(picture_svg(e).find("head 2 (did what)"), std::string::npos);
}

TEST(Drawing, APlotWithASliderLeads) {
  Explanation e = one_query();
  Plot plot{.title = "Demonstration", .x_label = "x", .y_label = "y"};
  plot.curves.push_back({.label = "curve", .x = {0, 1}, .y = {0, 1}});
  e.plots = {plot};
  const auto place = [](const std::string& svg, const char* what) { return svg.find(what); };
  std::string svg = picture_svg(e);
  EXPECT_GT(place(svg, "Demonstration"), place(svg, ">cat<"));
  e.plots[0].slider = Slider{.label = "h", .values = {1}};
  svg = picture_svg(e);
  EXPECT_LT(place(svg, "Demonstration"), place(svg, ">cat<"));
}

}  // namespace
}  // namespace fovea::explain
