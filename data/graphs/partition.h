// Which rank holds which node of a graph that is divided among ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "data/formats/graph.h"

namespace fovea::data {

enum class Partition : uint8_t {
  kContiguous,  // each rank a stretch of node numbers
  kEdgeCut,     // each node with its neighbours, where there is room
};

// The rank of each node. No rank has more than its share, rounded up. `graph` lists the nodes that
// each node sees. kEdgeCut goes through the nodes once and gives each to the rank that holds most of
// its neighbours so far: linear deterministic greedy (Stanton & Kliot 2012).
std::vector<int32_t> owners_of(const Csr& graph, int32_t ranks, Partition how);

// Edges between nodes of different ranks.
int64_t cut_edges(const Csr& graph, const std::vector<int32_t>& owners);

}  // namespace fovea::data
