#include "data/graphs/partition.h"

#include <algorithm>

namespace fovea::data {
namespace {

std::vector<int32_t> by_edge_cut(const Csr& graph, int32_t ranks) {
  const size_t nodes = graph.row_offsets.size() - 1, size = static_cast<size_t>(ranks);
  const double room = static_cast<double>((nodes + size - 1) / size);
  constexpr int32_t kNobody = -1;
  std::vector<int32_t> owners(nodes, kNobody);
  std::vector<double> load(size), held(size);
  for (size_t node = 0; node < nodes; ++node) {
    std::fill(held.begin(), held.end(), 0.0);
    for (const int32_t other : row_of(graph, node))
      if (const int32_t owner = owners[static_cast<size_t>(other)]; owner != kNobody)
        ++held[static_cast<size_t>(owner)];
    // Between equal ones the emptier rank is better.
    const auto worth = [&](size_t rank) {
      const double filled = load[rank] / room;
      return filled >= 1 ? -1.0 : held[rank] * (1 - filled) - 1e-6 * filled;
    };
    size_t best = 0;
    for (size_t rank = 1; rank < size; ++rank)
      if (worth(rank) > worth(best)) best = rank;
    owners[node] = static_cast<int32_t>(best);
    ++load[best];
  }
  return owners;
}

}  // namespace

std::vector<int32_t> owners_of(const Csr& graph, int32_t ranks, Partition how) {
  if (how == Partition::kEdgeCut) return by_edge_cut(graph, ranks);
  const auto nodes = static_cast<int64_t>(graph.row_offsets.size()) - 1;
  std::vector<int32_t> owners(static_cast<size_t>(nodes));
  for (int64_t node = 0; node < nodes; ++node)
    owners[static_cast<size_t>(node)] = static_cast<int32_t>(node * ranks / nodes);
  return owners;
}

int64_t cut_edges(const Csr& graph, const std::vector<int32_t>& owners) {
  int64_t cut = 0;
  for (size_t node = 0; node < owners.size(); ++node)
    for (const int32_t other : row_of(graph, node))
      cut += owners[node] != owners[static_cast<size_t>(other)];
  return cut;
}

}  // namespace fovea::data
