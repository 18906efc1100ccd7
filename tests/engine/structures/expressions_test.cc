// Unions and complements: against the boolean expression of their parts, drawn at random.
#include <random>

#include "engine/registry.h"
#include "tests/engine/structures/structure_check.h"

namespace fovea::engine::testing {
namespace {

struct Expression {
  Structure structure;
  Definition sees;
};

int64_t position(const Geometry& g, size_t batch, size_t i) {
  return static_cast<int64_t>(i) + g.query_offset[batch];
}

class Drawing {
 public:
  Drawing(const Geometry& g, uint32_t seed, const View& mask) : g_(g), draw_(seed), mask_(mask) {}

  Expression any(int depth) {
    if (depth == 0) return leaf();
    const Expression a = any(depth - 1);
    if (below(3) == 0) return {~a.structure, inverted(a.sees)};
    const Expression b = any(below(2) ? depth - 1 : 0);
    if (below(2)) {
      return {a.structure & b.structure, [a, b](size_t n, size_t h, size_t i, size_t j) {
                return a.sees(n, h, i, j) && b.sees(n, h, i, j);
              }};
    }
    return {a.structure | b.structure, [a, b](size_t n, size_t h, size_t i, size_t j) {
              return a.sees(n, h, i, j) || b.sees(n, h, i, j);
            }};
  }

 private:
  static Definition inverted(const Definition& sees) {
    return [sees](size_t n, size_t h, size_t i, size_t j) { return !sees(n, h, i, j); };
  }
  Expression leaf() {
    const Geometry& g = g_;
    const int64_t a = below(9), b = below(9);
    switch (below(5)) {
      case 0:
        return {Causal{}, [&g](size_t n, size_t, size_t i, size_t j) {
                  return static_cast<int64_t>(j) <= position(g, n, i);
                }};
      case 1:
        return {Window{a, b}, [&g, a, b](size_t n, size_t, size_t i, size_t j) {
                  const int64_t ahead = static_cast<int64_t>(j) - position(g, n, i);
                  return -a <= ahead && ahead <= b;
                }};
      case 2:
        return {First{a},
                [a](size_t, size_t, size_t, size_t j) { return static_cast<int64_t>(j) < a; }};
      case 3:
        return {Strided{a + 1}, [&g, a](size_t n, size_t, size_t i, size_t j) {
                  const int64_t away = position(g, n, i) - static_cast<int64_t>(j);
                  return away >= 0 && (away <= a + 1 || away % (a + 1) == 0);
                }};
      default: {
        const auto* data = static_cast<const uint8_t*>(mask_.data);
        const auto columns = static_cast<size_t>(mask_.size[1]);
        return {Keep{mask_}, [data, columns](size_t, size_t, size_t i, size_t j) {
                  return data[i * columns + j] != 0;
                }};
      }
    }
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(draw_() % static_cast<uint32_t>(n)); }

  const Geometry& g_;
  std::mt19937 draw_;
  const View mask_;
};

TEST(ExpressionStructure, SeesWhatTheBooleanExpressionSees) {
  std::mt19937 draw(5);
  for (auto [queries, keys] : awkward_lengths()) {
    std::vector<uint8_t> cells(queries * keys);
    for (uint8_t& cell : cells) cell = draw() % 3 == 0;
    const View mask = View::of(cells.data(), DType::kBool,
                               {static_cast<int64_t>(queries), static_cast<int64_t>(keys)});
    for (const auto& offsets : awkward_offsets()) {
      const Geometry g = two_sequences(queries, keys, keys / 2, offsets);
      for (uint32_t seed = 0; seed < 12; ++seed) {
        SCOPED_TRACE(::testing::Message() << queries << " x " << keys << ", seed " << seed);
        const Expression drawn = Drawing(g, seed, mask).any(1 + static_cast<int>(seed % 3));
        const Problem problem{.structure = drawn.structure};
        expect_pairs(*make_structure(problem, g), g, drawn.sees);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// StreamingLLM's keys are two ranges, and what lies between them is not looked at.
TEST(ExpressionStructure, AUnionSkipsWhatNeitherPartSees) {
  const Geometry g = two_sequences(4096, 4096, 4096);
  const Problem problem{.structure = Causal{} & (Window{100, 0} | First{4})};
  const auto stage = make_structure(problem, g);
  EXPECT_EQ(stage->seek(0, 0, 2048, 64, 64), 1948u);
  EXPECT_EQ(stage->seek(0, 0, 2048, 64, 2112), SIZE_MAX);
  EXPECT_EQ(stage->cover(0, 0, 2048, 64, 64, 64), Cover::kNone);
  EXPECT_EQ(stage->cover(0, 0, 2048, 64, 2011, 37), Cover::kAll);
  EXPECT_EQ(stage->most_ranges(), 2u);
  KeyRanges keys;
  stage->ranges(0, 0, 2048, &keys);
  ASSERT_EQ(keys.count, 2u);
  EXPECT_EQ(keys.each[0].end, 4u);
  EXPECT_EQ(keys.each[1].begin, 1948u);
  EXPECT_EQ(keys.each[1].end, 2049u);
}

}  // namespace
}  // namespace fovea::engine::testing
