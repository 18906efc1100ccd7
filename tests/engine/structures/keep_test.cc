#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// Where the mask, of one head and shared by both items, is true.
TEST(KeepStructure, SeesWhatItsMaskKeeps) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    std::vector<uint8_t> mask(queries * keys);
    for (size_t i = 0; i < mask.size(); ++i) mask[i] = i * 7 % 5 < 2;
    const auto stage =
        make_keep({View::of(mask.data(), DType::kBool,
                            {static_cast<int64_t>(queries), static_cast<int64_t>(keys)})},
                  g);
    const Definition sees = [&, keys = keys](size_t, size_t, size_t i, size_t j) {
      return mask[i * keys + j] != 0;
    };
    expect_pairs(*stage, g, sees);
    expect_tight(*stage, g, sees);
  }
}

}  // namespace
}  // namespace fovea::engine::testing
