#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// j <= i or j < length, i the query's position.
TEST(PrefixStructure, SeesThePrefixAndTheKeysBefore) {
  for (auto [queries, keys] : awkward_lengths()) {
    for (const auto& offsets : awkward_offsets()) {
      const Geometry g = two_sequences(queries, keys, keys / 2, offsets);
      for (const int64_t length : {0, 1, 6, 1000}) {
        const auto stage = make_prefix({.length = length}, g);
        const Definition sees = [&](size_t batch, size_t, size_t i, size_t j) {
          const auto at = static_cast<int64_t>(j);
          return at <= g.position(batch, i) || at < length;
        };
        expect_pairs(*stage, g, sees);
        expect_tight(*stage, g, sees);
      }
    }
  }
}

TEST(PrefixStructure, HasALengthForEachItem) {
  int32_t lengths[] = {4, 9};
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    const auto stage = make_prefix({.lengths = View::of(lengths, DType::kInt32, {2})}, g);
    expect_pairs(*stage, g, [&](size_t batch, size_t, size_t i, size_t j) {
      return j <= i || static_cast<int32_t>(j) < lengths[batch];
    });
  }
}

}  // namespace
}  // namespace fovea::engine::testing
