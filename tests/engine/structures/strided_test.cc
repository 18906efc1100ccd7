#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i and (i - j <= stride or (i - j) mod stride = 0), i the query's position.
TEST(StridedStructure, SeesTheBandAndEveryStride) {
  for (auto [queries, keys] : awkward_lengths()) {
    for (const auto& offsets : awkward_offsets()) {
      const Geometry g = two_sequences(queries, keys, keys / 2, offsets);
      for (const int64_t stride : {1, 2, 3, 8, 100}) {
        const Definition sees = [&g, stride](size_t batch, size_t, size_t i, size_t j) {
          const int64_t away = g.position(batch, i) - static_cast<int64_t>(j);
          return away >= 0 && (away <= stride || away % stride == 0);
        };
        expect_pairs(*make_strided({stride}, g), g, sees);
      }
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
