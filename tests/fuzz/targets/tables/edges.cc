#include "data/formats/graph.h"
#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

void fuzz_edges(std::string_view input) {
  Bytes bytes(input);
  const auto nodes = static_cast<int64_t>(bytes.below(300));
  const std::string path = folder().write("edges.txt", bytes.rest());
  std::vector<std::pair<int32_t, int32_t>> read;
  if (!reads(path, [&] { read = data::read_edges(path, nodes); })) return;
  data::symmetric_with_loops(nodes, read);
}
const Registration edges{"edges", fuzz_edges};

}  // namespace
}  // namespace fovea::fuzz
