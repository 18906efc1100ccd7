#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// i - left <= j <= i + right, i the query's position, -1 for no bound.
TEST(WindowStructure, SeesNeighbours) {
  for (auto [queries, keys] : awkward_lengths()) {
    for (const auto& offsets : awkward_offsets()) {
      const Geometry g = two_sequences(queries, keys, keys / 2, offsets);
      for (const auto& [left, right] : {std::pair<int64_t, int64_t>{0, 0},
                                        {3, 0},
                                        {-1, 2},
                                        {5, -1},
                                        {-1, -1},
                                        {INT64_MAX, INT64_MAX},
                                        {70, 1}}) {
        const auto stage = make_window({left, right}, g);
        const Definition sees = [&g, left = left, right = right](size_t batch, size_t, size_t i,
                                                                 size_t j) {
          const int64_t distance = static_cast<int64_t>(j) - g.position(batch, i);
          return (left < 0 || -distance <= left) && (right < 0 || distance <= right);
        };
        expect_pairs(*stage, g, sees);
        expect_tight(*stage, g, sees);
      }
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
