// Ragged and Graph have no stage: the packing of the arrays says which keys a row has. So they are
// tried through the engine, on rows whose mean can be counted by hand.
#include <gtest/gtest.h>

#include <vector>

#include "fovea/engine.h"
#include "tests/engine/bounds.h"

namespace fovea::engine::testing {
namespace {

// The means over the keys that each row sees: one head, values of width 1.
std::vector<float> means(int64_t queries, std::vector<float> values, const Structure& structure) {
  std::vector<float> query(static_cast<size_t>(queries)), key(values.size()), out(query.size(), -1);
  const auto keys = static_cast<int64_t>(values.size());
  Problem problem;
  problem.query = View::of(query.data(), DType::kFloat32, {queries, 1, 1});
  problem.key = View::of(key.data(), DType::kFloat32, {keys, 1, 1});
  problem.value = View::of(values.data(), DType::kFloat32, {keys, 1, 1});
  problem.normaliser = Uniform{};
  problem.structure = structure;
  Result result;
  result.output = View::of(out.data(), DType::kFloat32, {queries, 1, 1});
  forward(problem, result, default_parallel());
  return out;
}

void expect_means(const std::vector<float>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    expect_close(got[i], expected[i], bounds::rounded(expected[i]), "row " + std::to_string(i));
}

TEST(RaggedStructure, ARowSeesTheKeysOfItsOwnSequence) {
  std::vector<int32_t> query_offsets = {0, 2, 3, 4}, key_offsets = {0, 3, 3, 5};
  const Ragged ragged{View::of(query_offsets.data(), DType::kInt32, {4}),
                      View::of(key_offsets.data(), DType::kInt32, {4})};
  // The second sequence has no keys: its row is 0.
  expect_means(means(4, {1, 2, 6, 10, 20}, ragged), {3, 3, 0, 15});
}

TEST(GraphStructure, ARowSeesTheKeysOfItsEdgesAsOftenAsTheyAreNamed) {
  std::vector<int32_t> row_offsets = {0, 2, 2, 5}, columns = {4, 0, 1, 1, 3};
  const Graph graph{View::of(row_offsets.data(), DType::kInt32, {4}),
                    View::of(columns.data(), DType::kInt32, {5})};
  expect_means(means(3, {1, 2, 6, 11, 20}, graph), {10.5, 0, 5});
}

}  // namespace
}  // namespace fovea::engine::testing
