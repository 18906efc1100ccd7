#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

TEST(DenseStructure, SeesEveryKeyWithinTheLength) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    const Definition all = [](size_t, size_t, size_t, size_t) { return true; };
    expect_pairs(*make_dense(g), g, all);
    expect_tight(*make_dense(g), g, all);
  }
}

}  // namespace
}  // namespace fovea::engine::testing
