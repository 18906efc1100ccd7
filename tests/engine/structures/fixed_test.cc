#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i and (same block, or one of the last `summary` places of an earlier block).
TEST(FixedStructure, SeesItsBlockAndTheSummaries) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    for (const auto& [stride, summary] :
         {std::pair<int64_t, int64_t>{1, 1}, {4, 1}, {8, 3}, {16, 16}}) {
      const auto n = static_cast<size_t>(stride), last = static_cast<size_t>(summary);
      expect_pairs(*make_fixed({stride, summary}, g), g, [=](size_t, size_t, size_t i, size_t j) {
        return j <= i && (j / n == i / n || j % n >= n - last);
      });
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
