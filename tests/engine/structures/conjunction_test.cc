#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// A pair meets where every part lets it.
TEST(ConjunctionStructure, SeesWhatAllPartsSee) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    const auto near = [](size_t i, size_t j) { return i <= j + 5 && j <= i + 5; };
    {
      Vector<StructurePointer> parts;
      parts.push_back(make_causal(g));
      parts.push_back(make_window({5, 5}, g));
      expect_pairs(*make_conjunction(std::move(parts)), g,
                   [&](size_t, size_t, size_t i, size_t j) { return j <= i && near(i, j); });
    }
    {
      Vector<StructurePointer> parts;
      parts.push_back(make_window({5, 5}, g));
      parts.push_back(make_strided({3}, g));
      expect_pairs(*make_conjunction(std::move(parts)), g, [&](size_t, size_t, size_t i, size_t j) {
        return near(i, j) && j <= i && (i - j <= 3 || (i - j) % 3 == 0);
      });
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
