// A graph seen from its keys, and the transposes that are kept for the next call.
#include "engine/graph/transposed.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/call/problem.h"
#include "fovea/engine.h"

namespace fovea::engine::testing {
namespace {

// A graph on five keys, as a call resolves it.
struct SmallGraph {
  explicit SmallGraph(std::vector<int32_t> offsets, std::vector<int32_t> keys_of_rows)
      : row_offsets(std::move(offsets)), columns(std::move(keys_of_rows)) {
    const auto rows = static_cast<int64_t>(row_offsets.size()) - 1;
    problem.query = View::of(numbers.data(), DType::kFloat32, {rows, 1, 1});
    problem.key = problem.value = View::of(numbers.data(), DType::kFloat32, {5, 1, 1});
    problem.structure =
        Graph{View::of(row_offsets.data(), DType::kInt32, {rows + 1}),
              View::of(columns.data(), DType::kInt32, {static_cast<int64_t>(columns.size())})};
  }
  GraphView view() const { return GraphView(resolve(problem)); }

  std::vector<int32_t> row_offsets, columns;
  std::vector<float> numbers = std::vector<float>(8, 0.0f);
  Problem problem;
};

TEST(Transposed, HasTheEdgesOfEachKeyInAscendingOrderOfRows) {
  const SmallGraph graph({0, 2, 2, 5}, {4, 0, 1, 1, 4});
  const Transposed found(graph.view());
  EXPECT_EQ(found.offsets, (std::vector<size_t>{0, 1, 3, 3, 3, 5}));
  EXPECT_EQ(found.rows, (std::vector<int32_t>{0, 2, 2, 0, 2}));
  EXPECT_EQ(found.edges, (std::vector<int32_t>{1, 2, 3, 0, 4}));
  EXPECT_EQ(found.place, (std::vector<int32_t>{3, 0, 1, 2, 4}));
}

TEST(Transposed, IsKeptForAnEqualGraphAndMadeAgainForAChangedOne) {
  SmallGraph graph({0, 2, 2, 5}, {4, 0, 1, 1, 4});
  const SmallGraph copy({0, 2, 2, 5}, {4, 0, 1, 1, 4});
  const auto first = transposed_of(graph.view());
  EXPECT_EQ(transposed_of(copy.view()), first);
  graph.columns[4] = 3;  // in place: the addresses are the same, the graph is not
  const auto changed = transposed_of(graph.view());
  EXPECT_NE(changed, first);
  EXPECT_EQ(changed->offsets, (std::vector<size_t>{0, 1, 3, 3, 4, 5}));
}

TEST(Transposed, OfTheLeastRecentlyUsedGraphIsDropped) {
  const SmallGraph oldest({0, 1}, {0});
  const std::weak_ptr<const Transposed> dropped = transposed_of(oldest.view());
  for (int32_t key = 1; key < 5; ++key) {
    EXPECT_FALSE(dropped.expired());
    transposed_of(SmallGraph({0, 1}, {key}).view());
  }
  static_assert(kTransposedKept == 4);
  EXPECT_TRUE(dropped.expired());
}

}  // namespace
}  // namespace fovea::engine::testing
