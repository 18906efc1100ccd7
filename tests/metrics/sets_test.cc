// F1, IoU and sizes of predicted sets.
#include "metrics/sets.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fovea/error.h"

namespace fovea::metrics {
namespace {

TEST(SetScores, CountsOverAllItems) {
  // tp 3, fp 1, fn 2.
  const SetScores scores = set_scores({{0, 1}, {2}, {3}}, {{1, 0}, {3, 2}, {1}}, 6);
  EXPECT_DOUBLE_EQ(scores.f1, 6.0 / 9);
  EXPECT_DOUBLE_EQ(scores.iou, (1 + 0.5 + 0) / 3);
  EXPECT_DOUBLE_EQ(scores.exact, 1.0 / 3);
  EXPECT_DOUBLE_EQ(scores.size_error, 1.0 / 3);
}

TEST(SetScores, AbsentClassesAreSkippedAndCounted) {
  // Classes 0: 1, 1: 2/3, 2: 1, 3: 0 (predicted, never true); 4 and 5 occur nowhere. With the authors'
  // epsilon those two would score 1.
  const SetScores scores = set_scores({{0, 1}, {2, 3}, {}}, {{0, 1}, {2}, {1}}, 6);
  EXPECT_EQ(scores.absent_classes, 2);
  EXPECT_DOUBLE_EQ(scores.class_f1, (1 + 2.0 / 3 + 1 + 0) / 4);
}

TEST(SetScores, TwoEmptySetsAreTheSame) {
  const SetScores scores = set_scores({{}, {1}}, {{}, {}}, 2);
  EXPECT_DOUBLE_EQ(scores.iou, 0.5);
  EXPECT_DOUBLE_EQ(scores.exact, 0.5);
  EXPECT_DOUBLE_EQ(scores.f1, 0);
}

TEST(SetScores, WithoutAnyLabelF1IsUndefined) {
  const SetScores scores = set_scores({{}}, {{}}, 3);
  EXPECT_TRUE(std::isnan(scores.f1));
  EXPECT_TRUE(std::isnan(scores.class_f1));
  EXPECT_EQ(scores.absent_classes, 3);
  EXPECT_DOUBLE_EQ(scores.iou, 1);
}

TEST(SetScores, TheOrderOfLabelsDoesNotMatter) {
  const SetScores one = set_scores({{4, 2, 0}}, {{1, 2, 4}}, 5),
                  other = set_scores({{0, 2, 4}}, {{4, 1, 2}}, 5);
  EXPECT_DOUBLE_EQ(one.f1, other.f1);
  EXPECT_DOUBLE_EQ(one.iou, 0.5);
}

TEST(SetScores, WrongSetsAreRefusedByName) {
  const auto said = [](const std::vector<LabelSet>& a, const std::vector<LabelSet>& b) {
    try {
      set_scores(a, b, 3);
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  EXPECT_EQ(said({{3}}, {{0}}), "set_scores: label 3, expected 0 to 2");
  EXPECT_EQ(said({{0}}, {{-1}}), "set_scores: label -1, expected 0 to 2");
  EXPECT_EQ(said({{1, 1}}, {{1}}), "set_scores: label 1 twice in a set, expected once");
  EXPECT_EQ(said({{1}}, {}), "set_scores: 1 predicted sets, expected 0 (as many as true ones)");
}

}  // namespace
}  // namespace fovea::metrics
