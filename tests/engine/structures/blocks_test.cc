#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// Whole blocks of size x size pairs, a mask for each head.
TEST(BlocksStructure, SeesTheBlocksOfItsMask) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    const size_t size = 8, rows = (queries + size - 1) / size, columns = (keys + size - 1) / size;
    std::vector<uint8_t> mask(2 * rows * columns);
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i * 5 % 3 != 0;
    const auto stage =
        make_blocks({View::of(mask.data(), DType::kBool,
                              {1, 2, static_cast<int64_t>(rows), static_cast<int64_t>(columns)}),
                     static_cast<int64_t>(size)},
                    g);
    const Definition sees = [&](size_t, size_t head, size_t i, size_t j) {
      return mask[(head * rows + i / size) * columns + j / size] != 0;
    };
    expect_pairs(*stage, g, sees);
    expect_tight(*stage, g, sees);
  }
}

}  // namespace
}  // namespace fovea::engine::testing
