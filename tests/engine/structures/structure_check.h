// A structure alone: which pairs meet against its definition as a plain function, and what a tile is
// told (cover, range, mask) against the pairs.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "engine/structures/structures.h"

namespace fovea::engine::testing {

// Two items and two heads; the second item has fewer keys than its array. `offsets`: where the
// first query of each stands.
inline Geometry two_sequences(size_t queries, size_t keys, size_t limit,
                              const std::vector<int64_t>& offsets = {0, 0}) {
  Geometry g;
  g.batches = 2;
  g.heads = g.key_heads = 2;
  g.max_queries = queries;
  g.max_keys = keys;
  g.query_start.assign(2, 0);
  g.key_start.assign(2, 0);
  g.query_count.assign(2, queries);
  g.key_count.assign(2, keys);
  g.key_limit.assign(2, keys);
  g.key_limit.set(1, limit);
  for (const int64_t offset : offsets) g.query_offset.push_back(offset);
  return g;
}

using Definition = std::function<bool(size_t batch, size_t head, size_t i, size_t j)>;

// `sees` need not know of key lengths.
inline void expect_pairs(const StructureStage& stage, const Geometry& g, const Definition& sees) {
  for (size_t batch = 0; batch < g.batches; ++batch) {
    for (size_t head = 0; head < g.heads; ++head) {
      const size_t queries = g.query_count[batch], keys = g.key_count[batch];
      const auto meet = [&](size_t i, size_t j) {
        return j < g.key_limit[batch] && sees(batch, head, i, j);
      };
      for (size_t i = 0; i < queries; ++i) {
        size_t begin = 0, end = 0;
        stage.range(batch, head, i, &begin, &end);
        ASSERT_LE(begin, end);
        ASSERT_LE(end, g.key_limit[batch]);
        std::vector<uint8_t> keep(keys, 1);
        if (stage.irregular()) stage.mask(batch, head, i, 0, g.key_limit[batch], keep.data());
        for (size_t j = 0; j < keys; ++j) {
          ASSERT_EQ(stage.allows(batch, head, i, j), meet(i, j)) << i << ", " << j;
          ASSERT_EQ(begin <= j && j < end && keep[j] != 0, meet(i, j)) << i << ", " << j;
        }
        // A mask from the middle of a row.
        const size_t k0 = keys / 3, nk = std::min<size_t>(
                                        5, g.key_limit[batch] - std::min(k0, g.key_limit[batch]));
        std::vector<uint8_t> part(5, 1);
        if (stage.irregular()) stage.mask(batch, head, i, k0, nk, part.data());
        for (size_t c = 0; c < nk && stage.irregular(); ++c) ASSERT_EQ(part[c], keep[k0 + c]);
      }
      // The same pairs as ranges, where the structure lists them.
      for (size_t i = 0; i < queries && stage.most_ranges() > 0; ++i) {
        KeyRanges listed;
        stage.ranges(batch, head, i, &listed);
        ASSERT_LE(listed.count, stage.most_ranges());
        std::vector<bool> in(keys, false);
        for (size_t n = 0; n < listed.count; ++n) {
          ASSERT_LT(listed.each[n].begin, listed.each[n].end);
          ASSERT_TRUE(n == 0 || listed.each[n - 1].end < listed.each[n].begin);
          for (size_t j = listed.each[n].begin; j < listed.each[n].end; ++j) in.at(j) = true;
        }
        for (size_t j = 0; j < keys; ++j) ASSERT_EQ(in[j], meet(i, j)) << i << ", " << j;
      }
      // What is skipped holds nothing.
      for (const size_t nq : {size_t{1}, size_t{5}, size_t{64}}) {
        for (size_t q0 = 0; q0 < queries; q0 += nq) {
          const size_t rows = std::min(nq, queries - q0);
          for (size_t k = 0; k < keys; ++k) {
            const size_t next = stage.seek(batch, head, q0, rows, k);
            ASSERT_GE(next, k);
            for (size_t i = q0; i < q0 + rows; ++i)
              for (size_t j = k; j < std::min(next, keys); ++j) ASSERT_FALSE(meet(i, j)) << k;
          }
        }
      }
      for (const auto& [nq, nk] : {std::pair<size_t, size_t>{1, 1}, {3, 5}, {4, 16}, {64, 64}}) {
        for (size_t q0 = 0; q0 < queries; q0 += nq) {
          for (size_t k0 = 0; k0 < keys; k0 += nk) {
            const size_t rows = std::min(nq, queries - q0), columns = std::min(nk, keys - k0);
            size_t met = 0;
            for (size_t i = q0; i < q0 + rows; ++i)
              for (size_t j = k0; j < k0 + columns; ++j) met += meet(i, j);
            // A cover may be cautious (kSome), never wrong.
            const Cover cover = stage.cover(batch, head, q0, rows, k0, columns);
            if (cover == Cover::kNone) {
              ASSERT_EQ(met, 0u) << q0 << ", " << k0;
            }
            if (cover == Cover::kAll) {
              ASSERT_EQ(met, rows * columns) << q0 << ", " << k0;
            }
          }
        }
      }
    }
  }
}

// Tiles that are wholly seen or wholly hidden are known as such: that is what a structure saves.
inline void expect_tight(const StructureStage& stage, const Geometry& g, const Definition& sees) {
  for (size_t q0 = 0; q0 < g.max_queries; q0 += 4) {
    for (size_t k0 = 0; k0 < g.max_keys; k0 += 4) {
      const size_t rows = std::min<size_t>(4, g.max_queries - q0),
                   columns = std::min<size_t>(4, g.max_keys - k0);
      size_t met = 0;
      for (size_t i = q0; i < q0 + rows; ++i)
        for (size_t j = k0; j < k0 + columns; ++j) met += sees(0, 0, i, j);
      const Cover want = met == 0                ? Cover::kNone
                         : met == rows * columns ? Cover::kAll
                                                 : Cover::kSome;
      EXPECT_EQ(stage.cover(0, 0, q0, rows, k0, columns), want) << q0 << ", " << k0;
    }
  }
}

// The first keys, a step further on, and keys that start after the first query.
inline std::vector<std::vector<int64_t>> awkward_offsets() {
  return {{0, 0}, {3, 40}, {61, 2}, {-2, -70}};
}

inline std::vector<std::pair<size_t, size_t>> awkward_lengths() {
  return {{1, 1}, {7, 5}, {5, 7}, {67, 67}, {70, 131}};
}

}  // namespace fovea::engine::testing
