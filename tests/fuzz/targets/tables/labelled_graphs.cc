// Small graphs with labels on their edges.
#include "data/graphs/labelled_graphs.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_labelled_graphs(std::string_view bytes) {
  const std::string path = folder().write("a.tsv", bytes);
  std::vector<data::LabelledGraph> read;
  if (!reads(path, [&] { read = data::read_labelled_graphs(path); })) return;
  for (const data::LabelledGraph& graph : read) {
    const auto nodes = static_cast<int64_t>(graph.kinds.size());
    require(graph.asked >= 0 && graph.asked < nodes, "the asked node is there");
    for (const data::LabelledEdge& edge : graph.edges)
      require(edge.from >= 0 && edge.from < nodes && edge.to >= 0 && edge.to < nodes,
              "edges join nodes");
    const std::string text = data::labelled_graph_text(graph);
    require(data::labelled_graph_text(data::parse_labelled_graph(text, "again", 1)) == text,
            "a graph survives being written");
  }
}
const Registration labelled_graphs{"labelled_graphs", fuzz_labelled_graphs};

}  // namespace
}  // namespace fovea::fuzz
