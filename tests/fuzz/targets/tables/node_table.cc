#include "tests/fuzz/targets/tables/graph_checks.h"

namespace fovea::fuzz {
namespace {

void fuzz_node_table(std::string_view input) {
  Bytes bytes(input);
  static MemoryFolder own;  // planetoid's files, where there are any, come first
  own.write("nodes.csv", bytes.part());
  own.write("edges.csv", bytes.part());
  data::CitationGraph graph;
  if (reads(own.path(), [&] { graph = data::read_graph(own.path()); })) check_graph(graph);
}
const Registration node_table{"node_table", fuzz_node_table};

}  // namespace
}  // namespace fovea::fuzz
