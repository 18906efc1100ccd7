#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i, i the query's position.
TEST(CausalStructure, SeesNoLaterKey) {
  for (auto [queries, keys] : awkward_lengths()) {
    for (const auto& offsets : awkward_offsets()) {
      const Geometry g = two_sequences(queries, keys, keys / 2, offsets);
      const auto stage = make_causal(g);
      const Definition sees = [&](size_t batch, size_t, size_t i, size_t j) {
        return static_cast<int64_t>(j) <= g.position(batch, i);
      };
      expect_pairs(*stage, g, sees);
      expect_tight(*stage, g, sees);
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
