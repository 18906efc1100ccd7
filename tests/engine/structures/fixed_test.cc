#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i and (same block, or one of the last `summary` places of an earlier block), i the query's
// position.
TEST(FixedStructure, SeesItsBlockAndTheSummaries) {
  for (auto [queries, keys] : awkward_lengths()) {
    for (const auto& offsets : awkward_offsets()) {
      const Geometry g = two_sequences(queries, keys, keys / 2, offsets);
      for (const auto& [stride, summary] :
           {std::pair<int64_t, int64_t>{1, 1}, {4, 1}, {8, 3}, {16, 16}}) {
        const Definition sees = [&g, n = stride, last = summary](size_t batch, size_t, size_t i,
                                                                 size_t j) {
          const int64_t at = g.position(batch, i), key = static_cast<int64_t>(j);
          return key <= at && (key / n == at / n || key % n >= n - last);
        };
        expect_pairs(*make_fixed({stride, summary}, g), g, sees);
      }
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
