#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i, or j <= i + keys - queries, keys counted by their length.
TEST(CausalStructure, SeesNoLaterKey) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    for (const auto alignment : {choice::Alignment::kTopLeft, choice::Alignment::kBottomRight}) {
      const auto stage = make_causal({alignment}, g);
      const Definition sees = [&](size_t batch, size_t, size_t i, size_t j) {
        const bool shifted = alignment == choice::Alignment::kBottomRight;
        return shifted ? j + g.query_count[batch] <= i + g.key_limit[batch] : j <= i;
      };
      expect_pairs(*stage, g, sees);
      expect_tight(*stage, g, sees);
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
