// Rank-one scores on a graph (GAT) against libtorch's scatter form; rows gathered from memory are
// the roof.
#include <ATen/ATen.h>

#include <algorithm>
#include <random>

#include "bench/rows/operands.h"
#include "bench/peers/peers.h"

namespace fovea::bench {
namespace {

struct GraphCase {
  std::string size;
  int64_t nodes, edges, width;
  double forward, both;  // x_peer to reach
};

// Edges drawn uniformly, as a sampled neighbourhood looks to the memory: no order to profit from.
struct Edges {
  at::Tensor row_offsets, columns;  // int32, the CSR
  at::Tensor rows, columns64;       // int64 lists, as libtorch's operators want them

  Edges(int64_t nodes, int64_t edges) {
    std::mt19937 generator(11);
    std::vector<int64_t> row(static_cast<size_t>(edges));
    for (int64_t& r : row) r = static_cast<int64_t>(generator() % static_cast<uint64_t>(nodes));
    std::sort(row.begin(), row.end());
    rows = at::tensor(row, at::kLong);
    std::vector<int64_t> column(row.size());
    for (int64_t& c : column) c = static_cast<int64_t>(generator() % static_cast<uint64_t>(nodes));
    columns64 = at::tensor(column, at::kLong);
    columns = columns64.to(at::kInt);
    row_offsets = at::searchsorted(rows, at::arange(nodes + 1)).to(at::kInt);
  }
};

constexpr int64_t kGraphHeads = 8;

Row graph_row(const GraphCase& g, Pass pass) {
  const double pairs = 1.0 * g.edges * kGraphHeads;
  const double row_bytes = 4.0 * kGraphHeads * g.width;
  const double gathered =
      g.edges * row_bytes;  // backward gathers the gradient's rows through the transposed graph
  return {.name = row_name("rank-one", g.size, "graph", pass),
          .pass = pass,
          .roof = Roof::kGather,
          .work = {.pairs = pairs,
                   .flops = 2.0 * pairs * g.width * (pass == Pass::kForward ? 1 : 3),
                   .bytes = pass == Pass::kForward ? gathered + g.nodes * row_bytes
                                                   : 2 * gathered + 4 * g.nodes * row_bytes,
                   .elements = pairs},
          .make =
              [=] {
                const Edges edges(g.nodes, g.edges);
                Operands x(Shape{.queries = 1, .keys = 1});
                x.query = normal({g.nodes, kGraphHeads, 1}, 1);
                x.key = normal({g.nodes, kGraphHeads, 1}, 2);
                x.value = normal({g.nodes, kGraphHeads, g.width}, 3);
                x.gradient = normal({g.nodes, kGraphHeads, g.width}, 4).detach();
                const Choices choices{.score = RankOne{},
                                      .structure = Graph{edges.row_offsets, edges.columns}};
                return Instance{
                    .ours = x.ours(pass, choices),
                    .peers = {x.peer_with(pass, "scatter", {}, [edges](const Operands& y) {
                      return peers::graph_scatter(y.query, y.key, y.value, edges.rows,
                                                  edges.columns64, 0.2);
                    })}};
              },
          .figures = {times_peer_at_least(pass == Pass::kForward ? g.forward : g.both)},
          .tensor_bytes = 4.0 * g.nodes * kGraphHeads * (2 + 2 * g.width)};
}

}  // namespace

std::vector<Row> graph_rows() {
  const GraphCase large{"100k-700k-8x32", 100'000, 700'000, 32, 20, 18};
  const GraphCase cora{"cora-8x8", 2708, 13'264,
                       8,          15,   10};  // 10,556 edges and a loop at each node
  return {graph_row(large, Pass::kForward), graph_row(large, Pass::kForwardBackward),
          graph_row(cora, Pass::kForward), graph_row(cora, Pass::kForwardBackward)};
}

}  // namespace fovea::bench
