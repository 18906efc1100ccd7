#include "engine/marginals/marginals.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/engine/bounds.h"
#include "tests/engine/marginals/enumeration.h"
#include "tests/engine/targets.h"

namespace fovea::engine::testing {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A marginal sums `terms` products of rounded exps, and log Z reaches some tens.
template <class T>
double bound(size_t terms) {
  return 8.0 * static_cast<double>(terms + 8) *
         static_cast<double>(std::numeric_limits<T>::epsilon());
}

template <class T>
std::vector<T> as(const Doubles& x) {
  return {x.begin(), x.end()};
}
Doubles part(const Doubles& x, size_t from, size_t count) {
  return {x.begin() + static_cast<std::ptrdiff_t>(from),
          x.begin() + static_cast<std::ptrdiff_t>(from + count)};
}

class Marginals : public TargetTest {};

template <class T>
void compare_chains(size_t batch, size_t n, size_t states) {
  SCOPED_TRACE(::testing::Message() << "batch " << batch << " n " << n << " states " << states);
  const Doubles unary = normals(batch * n * states, 1);
  const Doubles pairwise = normals(batch * (n - 1) * states * states, 2);
  const auto u = as<T>(unary), p = as<T>(pairwise);
  std::vector<T> got_unary(u.size(), T(7)), got_pairwise(p.size(), T(7)), log_z(batch);
  const Chain<T> chain{
      batch, n, states, u.data(), p.data(), (n - 1) * states * states, states * states, nullptr};
  marginals(chain, {got_unary.data(), got_pairwise.data(), log_z.data()}, default_parallel());
  for (size_t b = 0; b < batch; ++b) {
    const size_t pairs = (n - 1) * states * states;
    const ChainSums all = every_chain(part(unary, b * n * states, n * states),
                                      part(pairwise, b * pairs, pairs), n, states);
    expect_close(log_z[b], all.log_partition, bound<T>(4 * n));
    for (size_t i = 0; i < n * states; ++i)
      expect_close(got_unary[b * n * states + i], all.unary[i], bound<T>(4 * n));
    for (size_t i = 0; i < pairs; ++i)
      expect_close(got_pairwise[b * pairs + i], all.pairwise[i], bound<T>(4 * n));
  }
}

TEST_P(Marginals, OfChainsAreThoseOfEveryChain) {
  for (const size_t states : {1u, 2u, 3u})
    for (const size_t n : {1u, 2u, 5u, 6u}) compare_chains<double>(3, n, states);
  for (const size_t batch : {1u, 4u, 17u, 33u}) compare_chains<float>(batch, 5, 2);
}

template <class T>
void compare_trees(size_t batch, size_t n) {
  SCOPED_TRACE(::testing::Message() << "batch " << batch << " n " << n);
  const Doubles arcs = normals(batch * n * n, 3);
  const auto a = as<T>(arcs);
  std::vector<T> got(a.size(), T(7)), log_z(batch);
  marginals(Tree<T>{batch, n, a.data(), nullptr}, {got.data(), log_z.data()}, default_parallel());
  for (size_t b = 0; b < batch; ++b) {
    const TreeSums all = every_tree(part(arcs, b * n * n, n * n), n);
    expect_close(log_z[b], all.log_partition, bound<T>(4 * n));
    for (size_t i = 0; i < n * n; ++i)
      expect_close(got[b * n * n + i], all.arcs[i], bound<T>(4 * n),
                   std::to_string(i / n) + "->" + std::to_string(i % n));
  }
}

TEST_P(Marginals, OfTreesAreThoseOfEveryProjectiveTree) {
  // With root arcs and any number of them: 1, 3, 12, 55, ... (ternary trees).
  EXPECT_EQ(every_tree(Doubles(4), 2).trees, 3u);
  EXPECT_EQ(every_tree(Doubles(16), 4).trees, 55u);
  for (const size_t n : {1u, 2u, 3u, 4u, 5u, 6u}) compare_trees<double>(2, n);
  for (const size_t batch : {1u, 17u, 33u}) compare_trees<float>(batch, 4);
}

TEST_P(Marginals, HeadsOfAWordSumToOneAtAnyLength) {
  const size_t n = 40;
  const auto arcs = as<float>(normals(n * n, 4));
  std::vector<float> got(n * n);
  marginals(Tree<float>{1, n, arcs.data(), nullptr}, {got.data(), nullptr}, default_parallel());
  for (size_t word = 0; word < n; ++word) {
    double sum = 0;
    for (size_t head = 0; head < n; ++head) sum += static_cast<double>(got[head * n + word]);
    expect_close(sum, 1, bound<float>(4 * n));
  }
}

TEST_P(Marginals, DoNotReadPadding) {
  const size_t n = 5;
  const std::vector<int64_t> lengths{3, 5, 1};
  Doubles arcs = normals(3 * n * n, 5), unary = normals(3 * n * 2, 6);
  const Doubles pairwise = normals(4, 7);
  for (size_t b = 0; b < 3; ++b) {
    const auto length = static_cast<size_t>(lengths[b]);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j)
        if (i >= length || j >= length) arcs[(b * n + i) * n + j] = kNaN;
      if (i >= length) unary[(b * n + i) * 2] = unary[(b * n + i) * 2 + 1] = kNaN;
    }
  }
  Doubles got(arcs.size(), 7), got_unary(unary.size(), 7), log_z(3), chain_log_z(3);
  marginals(Tree<double>{3, n, arcs.data(), lengths.data()}, {got.data(), log_z.data()},
            default_parallel());
  marginals(Chain<double>{3, n, 2, unary.data(), pairwise.data(), 0, 0, lengths.data()},
            {got_unary.data(), nullptr, chain_log_z.data()}, default_parallel());
  for (size_t b = 0; b < 3; ++b) {
    const auto length = static_cast<size_t>(lengths[b]);
    Doubles own(length * length), own_pairs;
    for (size_t i = 0; i < length; ++i)
      for (size_t j = 0; j < length; ++j) own[i * length + j] = arcs[(b * n + i) * n + j];
    for (size_t i = 0; i + 1 < length; ++i)
      own_pairs.insert(own_pairs.end(), pairwise.begin(), pairwise.end());
    const TreeSums trees = every_tree(own, length);
    const ChainSums chains = every_chain(part(unary, b * n * 2, length * 2), own_pairs, length, 2);
    expect_close(log_z[b], trees.log_partition, bound<double>(20));
    expect_close(chain_log_z[b], chains.log_partition, bound<double>(20));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        const double expected = i < length && j < length ? trees.arcs[i * length + j] : 0;
        expect_close(got[(b * n + i) * n + j], expected, bound<double>(20));
      }
      for (size_t s = 0; s < 2; ++s) {
        const double expected = i < length ? chains.unary[i * 2 + s] : 0;
        expect_close(got_unary[(b * n + i) * 2 + s], expected, bound<double>(20));
      }
    }
  }
}

// The derivative along a direction is the difference of what lies a little along it. What a central
// difference leaves out is less than what half the step changes; and it divides what the numbers
// round by the step. `at(by)`: log partition and marginals at so many times the direction.
template <class At>
void expect_differences(const Doubles& along, const At& at) {
  const double step = 1e-5;
  const Doubles up = at(step), down = at(-step), half_up = at(step / 2), half_down = at(-step / 2);
  for (size_t i = 0; i < along.size(); ++i) {
    const double slope = (up[i] - down[i]) / (2 * step),
                 left_out = 2 * std::fabs(slope - (half_up[i] - half_down[i]) / step);
    const double size = std::max(1.0, std::fabs(up[i]));
    expect_close(along[i], slope, left_out + bounds::rounded(size, bounds::kDoubleUlp) / step);
  }
}

TEST_P(Marginals, AlongADirectionAreTheirDifferences) {
  const size_t n = 6;
  const Doubles arcs = normals(n * n, 8), direction = normals(n * n, 9);
  const auto at = [&](double by) {
    Doubles moved = arcs, out(n * n + 1);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += by * direction[i];
    marginals(Tree<double>{1, n, moved.data(), nullptr}, {out.data(), out.data() + n * n},
              default_parallel());
    return out;
  };
  Doubles along(n * n + 1);
  marginals_along(Tree<double>{1, n, arcs.data(), nullptr}, direction.data(),
                  {along.data(), along.data() + n * n}, default_parallel());
  expect_differences(along, at);
}

TEST_P(Marginals, OfChainsAlongADirectionAreTheirDifferences) {
  const size_t n = 5, states = 3, pairs = (n - 1) * states * states;
  const Doubles scores = normals(n * states + pairs, 10), direction = normals(scores.size(), 11);
  const auto chain_of = [&](const Doubles& x) {
    return Chain<double>{1,      n, states, x.data(), x.data() + n * states, 0, states * states,
                         nullptr};
  };
  const auto result_of = [&](Doubles& x) {
    return ChainResult<double>{x.data(), x.data() + n * states, x.data() + n * states + pairs};
  };
  const auto at = [&](double by) {
    Doubles moved = scores, out(scores.size() + 1);
    for (size_t i = 0; i < moved.size(); ++i) moved[i] += by * direction[i];
    marginals(chain_of(moved), result_of(out), default_parallel());
    return out;
  };
  Doubles along(scores.size() + 1);
  marginals_along(chain_of(scores), direction.data(), direction.data() + n * states,
                  result_of(along), default_parallel());
  expect_differences(along, at);
}

TEST_P(Marginals, WithoutPairsAreSigmoids) {
  const size_t n = 7;
  Doubles unary = normals(n * 2, 12), got(n * 2);
  for (size_t i = 0; i < n; ++i) unary[2 * i] = 0;
  const Doubles none(4);
  marginals(Chain<double>{1, n, 2, unary.data(), none.data(), 0, 0, nullptr},
            {got.data(), nullptr, nullptr}, default_parallel());
  for (size_t i = 0; i < n; ++i)
    expect_close(got[2 * i + 1], 1 / (1 + std::exp(-unary[2 * i + 1])), bound<double>(n));
}

// Nothing overflows: scores of hundreds, and arcs that are ruled out.
TEST_P(Marginals, HoldForLargeAndForbiddenScores) {
  const size_t n = 3;
  const float never = -std::numeric_limits<float>::infinity();
  //                              to 0    to 1    to 2
  const std::vector<float> arcs{900.0f, -700.0f, never,  // from 0; the diagonal is the root
                                never,  -800.0f, 800.0f, 5.0f, never, never};
  std::vector<float> got(n * n), log_z(1);
  marginals(Tree<float>{1, n, arcs.data(), nullptr}, {got.data(), log_z.data()},
            default_parallel());
  const std::vector<float> only{1, 1, 0, 0, 0, 1, 0, 0, 0};  // root -> 0 -> 1 -> 2
  EXPECT_EQ(got, only);
  EXPECT_EQ(log_z[0], 1000.0f);
  std::vector<float> along(n * n);
  const std::vector<float> direction(n * n, 1.0f);
  marginals_along(Tree<float>{1, n, arcs.data(), nullptr}, direction.data(),
                  {along.data(), log_z.data()}, default_parallel());
  EXPECT_EQ(along, std::vector<float>(n * n, 0.0f));
  EXPECT_EQ(log_z[0], 3.0f);  // every tree has three arcs
}

TEST_P(Marginals, KeepANaNInItsOwnItem) {
  const size_t n = 4;
  Doubles arcs = normals(2 * n * n, 13), got(arcs.size());
  arcs[5] = kNaN;
  marginals(Tree<double>{2, n, arcs.data(), nullptr}, {got.data(), nullptr}, default_parallel());
  EXPECT_TRUE(std::isnan(got[5]));
  for (size_t i = n * n; i < got.size(); ++i) EXPECT_FALSE(std::isnan(got[i]));
}

FOVEA_FOR_EVERY_TARGET(Marginals);

}  // namespace
}  // namespace fovea::engine::testing
