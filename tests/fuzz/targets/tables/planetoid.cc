#include "tests/fuzz/targets/tables/graph_checks.h"

namespace fovea::fuzz {
namespace {

void fuzz_planetoid(std::string_view input) {
  Bytes bytes(input);
  for (const char* name : {"meta.txt", "edges.txt", "features.txt", "labels.txt", "split_train.txt",
                           "split_val.txt", "split_test.txt"})
    folder().write(name, bytes.part());
  data::CitationGraph graph;
  if (reads(folder().path(), [&] { graph = data::read_graph(folder().path()); }))
    check_graph(graph);
}
const Registration planetoid{"planetoid", fuzz_planetoid};

}  // namespace
}  // namespace fovea::fuzz
