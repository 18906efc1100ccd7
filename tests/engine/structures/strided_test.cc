#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i and (i - j <= stride or (i - j) mod stride = 0).
TEST(StridedStructure, SeesTheBandAndEveryStride) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    for (const int64_t stride : {1, 2, 3, 8, 100}) {
      const auto n = static_cast<size_t>(stride);
      expect_pairs(*make_strided({stride}, g), g, [=](size_t, size_t, size_t i, size_t j) {
        return j <= i && (i - j <= n || (i - j) % n == 0);
      });
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
