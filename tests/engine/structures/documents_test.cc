#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

// Equal ids; sorted ids make one range a query, others a mask.
TEST(DocumentsStructure, SeesItsOwnDocument) {
  for (auto [queries, keys] : awkward_lengths()) {
    const Geometry g = two_sequences(queries, keys, keys / 2);
    for (const bool sorted : {true, false}) {
      const auto id = [&](size_t batch, size_t at) {
        return static_cast<int32_t>(sorted ? at / 5 : (at * 7 + batch) % 3);
      };
      std::vector<int32_t> query_ids, key_ids;
      for (size_t b = 0; b < 2; ++b) {
        for (size_t i = 0; i < queries; ++i) query_ids.push_back(id(b, i));
        for (size_t j = 0; j < keys; ++j) key_ids.push_back(id(b, j));
      }
      const auto stage = make_documents(
          {View::of(query_ids.data(), DType::kInt32, {2, static_cast<int64_t>(queries)}),
           View::of(key_ids.data(), DType::kInt32, {2, static_cast<int64_t>(keys)})},
          g);
      const Definition sees = [&](size_t batch, size_t, size_t i, size_t j) {
        return id(batch, i) == id(batch, j);
      };
      EXPECT_TRUE(sorted ? !stage->irregular() : stage->irregular() || keys < 3);
      expect_pairs(*stage, g, sees);
      expect_tight(*stage, g, sees);
    }
  }
}

}  // namespace
}  // namespace fovea::engine::testing
