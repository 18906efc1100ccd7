#include "tests/fuzz/targets/tables/graph_checks.h"

namespace fovea::fuzz {
namespace {

void fuzz_node_table(std::string_view input) {
  Bytes bytes(input);
  folder().write("nodes.csv", bytes.part());
  folder().write("edges.csv", bytes.part());
  data::CitationGraph graph;
  if (reads(folder().path(), [&] { graph = data::read_graph(folder().path()); }))
    check_graph(graph);
}
const Registration node_table{"node_table", fuzz_node_table};

}  // namespace
}  // namespace fovea::fuzz
