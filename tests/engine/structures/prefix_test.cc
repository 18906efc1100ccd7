#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i or j < length.
TEST(PrefixStructure, SeesThePrefixAndTheKeysBefore) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    for (const int64_t length : {0, 1, 6, 1000}) {
      const auto stage = make_prefix({length}, g);
      const Definition sees = [=](size_t, size_t, size_t i, size_t j) {
        return j <= i || static_cast<int64_t>(j) < length;
      };
      expect_pairs(*stage, g, sees);
      expect_tight(*stage, g, sees);
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
