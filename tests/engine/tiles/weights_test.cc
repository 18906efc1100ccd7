// Selected weights: chosen rows and heads, the largest of each row, sums of columns; before
// dropout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/reference/reference.h"
#include "tests/engine/bounds.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using engine::DType;
using engine::View;

// Weights are 1 at most.
const double kClose = bounds::rounded(1);

constexpr cases::Shape kShape{2, 3, 1, 13, 21, 4, 3};

// weights[batch][head][query][key], zeros where nothing is seen.
Numbers all_weights(const Built& built) {
  const auto truth = reference::forward<double>(built.problem);
  Numbers all(2 * 3 * 13 * 21, 0.0);
  for (const auto& row : truth.rows) {
    for (size_t n = 0; n < row.keys.size(); ++n) {
      all[((row.batch * 3 + row.head) * 13 + row.query) * 21 + row.keys[n]] += row.weights[n];
    }
  }
  return all;
}

std::vector<Case> some_cases() {
  std::vector<Case> all;
  for (const auto& normaliser : cases::normalisers()) {
    all.push_back(
        {.normaliser = normaliser.name, .structure = {"keep"}, .shape = kShape, .dropout_p = 0.5});
  }
  for (const char* score : {"additive", "kernel_gaussian", "kernel_box", "cosine", "location"}) {
    all.push_back({.score = score, .structure = {"causal"}, .shape = kShape});
  }
  all.push_back({.modifiers = {"relative", "soft_cap", "bias", "alibi"},
                 .structure = {"window"},
                 .shape = kShape,
                 .key_lengths = true,
                 .query_offset = true});
  return all;
}

TEST(Weights, OfAllRowsAreTheReferences) {
  for (const Case& c : some_cases()) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    const View weights = built.storage.zeros(DType::kFloat32, {2, 3, 13, 21});
    engine::weights(built.problem, {}, {weights, {}}, engine::default_parallel());
    expect_same(numbers(weights), all_weights(built), kClose, "weights");
  }
}

TEST(Weights, NeedNoValue) {
  for (const Case& c : some_cases()) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    const View with = built.storage.zeros(DType::kFloat32, {2, 3, 13, 21});
    const View without = built.storage.zeros(DType::kFloat32, {2, 3, 13, 21});
    engine::weights(built.problem, {}, {with, {}}, engine::default_parallel());
    built.problem.value = {};
    engine::weights(built.problem, {}, {without, {}}, engine::default_parallel());
    EXPECT_EQ(numbers(without), numbers(with));
  }
  Built graph = cases::build({.structure = {"graph"}, .shape = {1, 2, 1, 9, 9, 4, 3}});
  const int64_t edges = std::get<engine::Graph>(graph.problem.structure.all_of[0]).columns.size[0];
  const View with = graph.storage.zeros(DType::kFloat32, {edges, 2});
  const View without = graph.storage.zeros(DType::kFloat32, {edges, 2});
  engine::weights(graph.problem, {}, {with, {}}, engine::default_parallel());
  graph.problem.value = {};
  engine::weights(graph.problem, {}, {without, {}}, engine::default_parallel());
  EXPECT_EQ(numbers(without), numbers(with));
  engine::Problem nothing;  // nor a query: that is missed
  EXPECT_THROW(engine::weights(nothing, {}, {}, engine::default_parallel()), InvalidArgument);
}

TEST(Weights, OfChosenRowsAndHeads) {
  const Numbers rows = {12, 0, 5}, heads = {2, 0};
  for (const Case& c : some_cases()) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    const View weights = built.storage.zeros(DType::kFloat32, {2, 2, 3, 21});
    engine::weights(built.problem,
                    {.rows = built.storage.values(DType::kInt32, rows),
                     .heads = built.storage.values(DType::kInt32, heads)},
                    {weights, {}}, engine::default_parallel());
    const Numbers truth = all_weights(built);
    Numbers expected;
    for (int b = 0; b < 2; ++b) {
      for (double head : heads) {
        for (double row : rows) {
          const auto start = truth.begin() + static_cast<int64_t>(((b * 3 + head) * 13 + row) * 21);
          expected.insert(expected.end(), start, start + 21);
        }
      }
    }
    expect_same(numbers(weights), expected, kClose, "weights");
  }
}

TEST(Weights, TheLargestOfEachRow) {
  constexpr int64_t kTop = 5;
  for (const Case& c : some_cases()) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    const View weights = built.storage.zeros(DType::kFloat32, {2, 3, 13, kTop});
    const View indices = built.storage.zeros(DType::kInt32, {2, 3, 13, kTop});
    engine::Selection selection;
    selection.top_k = kTop;
    engine::weights(built.problem, selection, {weights, indices}, engine::default_parallel());
    const Numbers got = numbers(weights), at = numbers(indices);
    const auto truth = reference::forward<double>(built.problem);
    for (const auto& row : truth.rows) {
      const int64_t first = ((row.batch * 3 + row.head) * 13 + row.query) * kTop;
      Numbers sorted = row.weights;
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      const double scale = std::max(1.0, sorted.empty() ? 0.0 : sorted.front());
      for (int64_t n = 0; n < kTop; ++n) {
        const double index = at[first + n];
        if (n >= static_cast<int64_t>(sorted.size())) {
          EXPECT_EQ(got[first + n], 0);
          // A key beyond a compact kernel's support may be named, with weight 0.
          if (c.score != "kernel_box") {
            EXPECT_EQ(index, -1);
          }
          continue;
        }
        expect_close(got[first + n], sorted[n], bounds::rounded(scale));
        const auto key = std::find(row.keys.begin(), row.keys.end(), static_cast<int64_t>(index));
        ASSERT_NE(key, row.keys.end()) << index;
        expect_close(row.weights[key - row.keys.begin()], sorted[n], 2 * bounds::rounded(scale));
        if (n > 0 && got[first + n] == got[first + n - 1]) {
          EXPECT_GT(index, at[first + n - 1]);  // ties: the lower index first
        }
      }
    }
  }
}

TEST(Weights, SumsOfColumns) {
  for (const Case& c : some_cases()) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    const View sums = built.storage.zeros(DType::kFloat32, {2, 3, 21});
    engine::Selection selection;
    selection.column_sums = true;
    engine::weights(built.problem, selection, {sums, {}}, engine::default_parallel());
    const Numbers truth = all_weights(built);
    Numbers expected(2 * 3 * 21, 0.0);
    for (size_t n = 0; n < truth.size(); ++n) expected[n / (13 * 21) * 21 + n % 21] += truth[n];
    expect_same(numbers(sums), expected, 13 * kClose, "sums");
  }
}

TEST(Weights, OfSoftmaxSumToOne) {
  for (const char* normaliser :
       {"softmax", "sparsemax", "entmax", "entmax_1.3", "top_k", "uniform"}) {
    Built built = cases::build({.normaliser = normaliser, .shape = kShape});
    const View weights = built.storage.zeros(DType::kFloat32, {2, 3, 13, 21});
    engine::weights(built.problem, {}, {weights, {}}, engine::default_parallel());
    const Numbers all = numbers(weights);
    for (size_t row = 0; row < all.size(); row += 21) {
      expect_close(std::accumulate(all.begin() + row, all.begin() + row + 21, 0.0), 1,
                   bounds::rounded(1), normaliser);
    }
  }
}

}  // namespace
}  // namespace fovea
