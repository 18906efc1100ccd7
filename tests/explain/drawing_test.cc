#include "explain/drawing/drawing.h"

#include <gtest/gtest.h>

#include <string>

#include "explain/drawing/svg.h"
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

TEST(Drawing, BarsThatHaveNamesStandOnThem) {
  Explanation e = one_query();
  Plot plot{.x_label = "next word", .y_label = "probability"};
  plot.curves.push_back({.kind = Curve::Kind::kBars, .x = {1, 2}, .y = {0.9, 0.1}});
  e.plots = {plot};
  EXPECT_EQ(picture_svg(e).find(">piano</text>"), std::string::npos);
  EXPECT_NE(picture_svg(e).find(">1.5</text>"), std::string::npos);
  e.plots[0].curves[0].names = {"tea", "piano"};
  EXPECT_NE(picture_svg(e).find(">piano</text>"), std::string::npos);
  EXPECT_EQ(picture_svg(e).find(">1.5</text>"), std::string::npos);
}

TEST(Drawing, ATitleIsWiderThanItsLettersWithoutBold) {
  const char* words = "The next word, layer by layer: its probability";
  EXPECT_GT(drawing::paragraph(words, 1000, "title").width,
            1.1 * drawing::paragraph(words, 1000, "label").width);
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

TEST(Drawing, AMemoryHasItsLinesWhole) {
  Explanation e = one_query();
  e.view = View::kMemory;
  e.heads = {"head", {"1"}};
  e.keys[0].text = "Daniel moved to the garden after lunch.";
  e.maps = {{.dense = {0.25f, 0.75f}}};
  const std::string svg = picture_svg(e);
  EXPECT_NE(svg.find("Daniel moved to the garden after lunch."), std::string::npos);
  EXPECT_NE(svg.find(">0.75<"), std::string::npos);
}

TEST(Drawing, PrunedContinuationsAreCounted) {
  Explanation e;
  e.title = "Beam";
  e.view = View::kTree;
  using State = TreeNode::State;
  e.tree = {{.parent = -1, .text = "<s>"},
            {.parent = 0, .text = "the", .state = State::kBest},
            {.parent = 0, .text = "xylophone", .state = State::kPruned},
            {.parent = 0, .text = "zebra", .state = State::kPruned}};
  const std::string svg = picture_svg(e);
  EXPECT_NE(svg.find(">the<"), std::string::npos);
  EXPECT_EQ(svg.find("xylophone"), std::string::npos);
  EXPECT_NE(svg.find(">+2<"), std::string::npos);
}

TEST(Drawing, TheWayOfGreedySearchHasItsOwnColour) {
  Explanation e;
  e.title = "Beam";
  e.view = View::kTree;
  using State = TreeNode::State;
  e.tree = {{.parent = -1, .text = "<s>"},
            {.parent = 0, .text = "a", .state = State::kBest},
            {.parent = 0, .text = "the", .state = State::kLive}};
  EXPECT_EQ(picture_svg(e).find("greedy"), std::string::npos);
  const size_t plain = picture_svg(e).find("#a8558a");
  e.tree[2].state = State::kGreedy;
  e.outcome = "beam: a (right)\ngreedy search: the (wrong)";
  const std::string svg = picture_svg(e);
  EXPECT_NE(svg.find("purple: where greedy search goes"), std::string::npos);
  EXPECT_EQ(plain, std::string::npos);
  EXPECT_NE(svg.find("#a8558a"), std::string::npos);
  EXPECT_NE(svg.find(">beam: a (right)<"), std::string::npos) << "each answer has its line";
  EXPECT_NE(svg.find(">greedy search: the (wrong)<"), std::string::npos);
}

TEST(Drawing, AWayThatFindsNoRoomEndsWithPoints) {
  Explanation e;
  e.title = "Beam";
  e.view = View::kTree;
  e.tree = {{.parent = -1, .text = "<s>"}};
  for (int word = 0; word < 80; ++word)
    e.tree.push_back(
        {.parent = word, .text = "word" + std::to_string(word), .state = TreeNode::State::kBest});
  const std::string svg = picture_svg(e);
  EXPECT_NE(svg.find(">word10<"), std::string::npos);
  EXPECT_NE(svg.find(" …<"), std::string::npos);
  EXPECT_EQ(svg.find("word79"), std::string::npos);
}

TEST(Drawing, ATableOfTheWordAskedAbout) {
  Explanation e = one_query();
  e.heads = {"head", {"1"}};
  e.queries.push_back({.text = "it"});
  e.maps = {{.dense = {1, 0, 0, 1}}};
  e.truth = Truth{.label = "meant", .sure = {{.query = 1, .key = 1, .weight = 1}}};
  e.tables = {{.title = "Steps for ?", .query = 0, .columns = {"a"}, .rows = {{"1"}}},
              {.title = "Steps for it", .query = 1, .columns = {"a"}, .rows = {{"2"}}}};
  const std::string svg = picture_svg(e);
  EXPECT_NE(svg.find("Steps for it"), std::string::npos);
  EXPECT_EQ(svg.find("Steps for ?"), std::string::npos);
}

TEST(Drawing, NamesOfPointsDoNotLieOnEachOther) {
  Explanation e;
  e.title = "Words";
  e.view = View::kCurve;
  Plot plot{.title = "Plane", .x_label = "x", .y_label = "y"};
  plot.curves.push_back({.kind = Curve::Kind::kPoints,
                         .label = "words",
                         .x = {0, 0.001, 0.002, 1},
                         .y = {0, 0, 0, 1},
                         .names = {"first", "second", "third", "fourth"}});
  e.plots = {plot};
  const std::string svg = picture_svg(e);
  const auto level = [&](const std::string& name) {  // of its text
    const size_t end = svg.find(">" + name + "<"), y = svg.rfind("y=\"", end) + 3;
    EXPECT_NE(end, std::string::npos) << name;
    return std::stod(svg.substr(y, end - y));
  };
  EXPECT_NE(level("third"), level("first"));
  EXPECT_NE(level("second"), level("fourth"));
}

}  // namespace
}  // namespace fovea::explain
