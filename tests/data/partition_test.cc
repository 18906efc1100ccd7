#include "data/graphs/partition.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "data/generated/graph.h"

namespace fovea::data {
namespace {

std::vector<int64_t> loads(const std::vector<int32_t>& owners, int32_t ranks) {
  std::vector<int64_t> out(static_cast<size_t>(ranks));
  for (const int32_t owner : owners) ++out.at(static_cast<size_t>(owner));
  return out;
}

Csr graph_of(const GraphPlan& plan) {
  const GeneratedGraph made = generate_graph(plan);
  return symmetric_with_loops(made.graph.nodes, made.graph.edges);
}

TEST(Partition, NoRankHasMoreThanItsShare) {
  const Csr graph = graph_of({.nodes = 103});
  for (const Partition how : {Partition::kContiguous, Partition::kEdgeCut})
    for (const int32_t ranks : {1, 2, 4, 7, 103, 200}) {
      const auto owners = owners_of(graph, ranks, how);
      ASSERT_EQ(owners.size(), 103u);
      const auto held = loads(owners, ranks);
      EXPECT_LE(*std::max_element(held.begin(), held.end()), (103 + ranks - 1) / ranks) << ranks;
    }
}

TEST(Partition, ContiguousGivesStretches) {
  const auto owners = owners_of(graph_of({.nodes = 64}), 4, Partition::kContiguous);
  EXPECT_TRUE(std::is_sorted(owners.begin(), owners.end()));
  EXPECT_EQ(loads(owners, 4), (std::vector<int64_t>{16, 16, 16, 16}));
}

TEST(Partition, EdgeCutKeepsNeighboursTogether) {
  // Two rings whose nodes alternate: every second number is of the other ring.
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < 200; ++i) edges.emplace_back(i, (i + 2) % 200);
  const Csr rings = symmetric_with_loops(200, edges);
  const int64_t by_number = cut_edges(rings, owners_of(rings, 2, Partition::kContiguous)),
                by_edges = cut_edges(rings, owners_of(rings, 2, Partition::kEdgeCut));
  EXPECT_EQ(by_number, 8);  // each ring is cut at two places, in both directions
  EXPECT_EQ(by_edges, 0);
}

TEST(Partition, ANearbyCitationIsRarelyCut) {
  const Csr near = graph_of({.nodes = 4000, .reach = 50}), far = graph_of({.nodes = 4000});
  const auto owners = owners_of(near, 4, Partition::kContiguous);
  EXPECT_LT(20 * cut_edges(near, owners), static_cast<int64_t>(near.columns.size()));
  EXPECT_GT(2 * cut_edges(far, owners), static_cast<int64_t>(far.columns.size()));
  for (size_t node = 0; node < owners.size(); ++node)
    for (int32_t e = near.row_offsets[node]; e < near.row_offsets[node + 1]; ++e)
      EXPECT_LE(std::abs(near.columns[static_cast<size_t>(e)] - static_cast<int32_t>(node)), 50);
}

}  // namespace
}  // namespace fovea::data
