// The rules that hold for every mechanism: masks are sets, empty rows are zeros, one key weighs 1,
// padding and order do not matter, the future is not seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/reference/structure.h"
#include "tests/engine/bounds.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

// Results of the order of 1, rounded along another path.
const double kClose = bounds::rounded(1);

bool has_meaning(const Case& c) {
  return c.score != "kernel_silverman" || c.normaliser == "kernel_ratio" ||
         c.normaliser == "unnormalised";
}

// Rows of a batched array as they are after `order` is applied to dimension 2.
void permute(const View& view, const std::vector<int64_t>& order) {
  const Numbers old = numbers(view);
  const int64_t rows = view.size[2], width = view.size[3];
  Numbers moved = old;
  for (int64_t outer = 0; outer < view.size[0] * view.size[1]; ++outer) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < width; ++c) {
        moved[(outer * rows + r) * width + c] = old[(outer * rows + order[r]) * width + c];
      }
    }
  }
  assign(view, moved);
}

std::vector<int64_t> shuffled(int64_t n, Storage& storage) {
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = n - 1; i > 0; --i) std::swap(order[i], order[storage.integer(0, i)]);
  return order;
}

TEST(Rules, AMaskedKeyHasNoGradientAndAnEmptyRowIsZero) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const char* structure : {"keep", "documents", "graph", "blocks"}) {
      const Case c{.normaliser = normaliser.name,
                   .structure = {structure},
                   .shape = {1, 2, 1, 9, 10, 4, 3},
                   .content = cases::Content::kPoison};
      SCOPED_TRACE(c.name());
      Built built = cases::build(c);
      const Results results = run_forward(built);
      const auto gradients = run_backward(built);
      const reference::Structure truth(built.problem);
      const auto& sequence = truth.sequences().at(0);
      const bool packed = truth.packed();
      int64_t empty = 0;
      std::vector<bool> seen(10);
      for (int64_t head = 0; head < 2; ++head) {
        for (int64_t i = 0; i < 9; ++i) {
          const auto keys = truth.keys(sequence, head, i);
          for (int64_t j : keys) seen[j] = true;
          if (!keys.empty()) continue;
          ++empty;
          const int64_t row = packed ? i * 2 + head : head * 9 + i;
          for (int64_t n = 0; n < 3; ++n) EXPECT_EQ(results.output[row * 3 + n], 0);
          for (int64_t n = 0; n < 4; ++n) EXPECT_EQ(gradients[0][row * 4 + n], 0);
        }
      }
      EXPECT_EQ(results.empty_rows, empty);
      for (int64_t j = 0; j < 10; ++j) {
        if (seen[j]) continue;
        for (int64_t n = 0; n < 4; ++n) EXPECT_EQ(gradients[1][j * 4 + n], 0);
        for (int64_t n = 0; n < 3; ++n) EXPECT_EQ(gradients[2][j * 3 + n], 0);
      }
    }
  }
}

TEST(Rules, ANotANumberIsSeenOnlyByThoseWhoLookAtIt) {
  // Value 6 is NaN: with a causal structure rows 0 to 5 know nothing of it.
  for (const auto& normaliser : cases::normalisers()) {
    const Case c{
        .normaliser = normaliser.name, .structure = {"causal"}, .shape = {1, 1, 1, 8, 8, 4, 3}};
    SCOPED_TRACE(c.name());
    Built clean = cases::build(c), dirty = cases::build(c);
    Numbers values = numbers(dirty.problem.value);
    std::fill_n(values.begin() + 6 * 3, 3, NAN);
    assign(dirty.problem.value, values);
    const Numbers expected = run_forward(clean).output, got = run_forward(dirty).output;
    // Beside a NaN the sum skips what weighs nothing, term by term: other roundings, no other
    // terms.
    for (int64_t n = 0; n < 6 * 3; ++n)
      expect_close(got[n], expected[n], bounds::rounded(std::max(1.0, std::fabs(expected[n]))));
  }
}

TEST(Rules, AScoreThatIsNotANumberIsAnErrorNamingTheRow) {
  for (const auto& normaliser : cases::normalisers()) {
    if (normaliser.name == "uniform") continue;  // looks at no score
    for (const double bad : {double(NAN), double(INFINITY)}) {
      const Case c{
          .score = "location", .normaliser = normaliser.name, .shape = {1, 1, 1, 5, 7, 7, 3}};
      SCOPED_TRACE(c.name());
      Built built = cases::build(c);
      Numbers scores = numbers(built.problem.query);
      scores[3 * 7 + 2] = bad;
      assign(built.problem.query, scores);
      built.problem.check_finite = true;
      try {
        run_forward(built);
        ADD_FAILURE() << "no error for " << bad;
      } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find("query 3"), std::string::npos) << error.what();
      }
    }
  }
}

TEST(Rules, OneKeyWeighsExactlyOne) {
  for (const auto& score : cases::scores()) {
    for (const char* normaliser : {"softmax", "kernel_ratio", "uniform", "sparsemax", "entmax",
                                   "entmax_1.3", "top_k", "hard"}) {
      Case c{.score = score.name, .normaliser = normaliser, .shape = {1, 2, 1, 5, 1, 3, 4}};
      if (!has_meaning(c)) continue;
      SCOPED_TRACE(c.name());
      Built built = cases::build(c);
      assign(built.problem.key, Numbers(numbers(built.problem.key).size(), 0.5));
      Numbers query = numbers(built.problem.query);
      for (double& x : query) x = 0.5 + x / 8;  // near: within a compact kernel's support
      assign(built.problem.query, query);
      const Numbers value = numbers(built.problem.value);
      const Results results = run_forward(built);
      // K v / K rounds twice.
      const double ulps = c.normaliser == "kernel_ratio" ? 2 * 0x1p-23 : 0;
      for (size_t n = 0; n < results.output.size(); ++n) {
        expect_close(results.output[n], value[n % 4], ulps * std::fabs(value[n % 4]));
      }
      if (built.gradients.lse) assign(built.gradients.lse, Numbers(2 * 5, 0.0));
      const auto gradients = run_backward(built);
      for (double d : gradients[0]) expect_close(d, 0, 8 * ulps);
    }
  }
}

TEST(Rules, SevenPadsChangeNothing) {
  for (const auto& score : cases::scores()) {
    if (score.name == "location") continue;  // its query is as wide as the keys are many
    for (const auto& normaliser : cases::normalisers()) {
      Case c{.score = score.name,
             .normaliser = normaliser.name,
             .structure = {"causal"},
             .shape = {1, 2, 1, 9, 9, 4, 3},
             .dropout_p = 0.1};
      if (!has_meaning(c)) continue;
      SCOPED_TRACE(c.name());
      Built plain = cases::build(c);
      c.shape.keys += 7;
      Built padded = cases::build(c);
      padded.problem.score = plain.problem.score;
      padded.problem.normaliser = plain.problem.normaliser;
      const auto copy = [](const View& from, const View& to) {
        const Numbers numbers_of = numbers(from);
        Numbers longer;
        const auto head = static_cast<int64_t>(numbers_of.size()) / from.size[1];
        const int64_t pads = (to.size[2] - from.size[2]) * to.size[3];
        for (int64_t h = 0; h < from.size[1]; ++h) {
          longer.insert(longer.end(), numbers_of.begin() + h * head,
                        numbers_of.begin() + (h + 1) * head);
          longer.insert(longer.end(), pads, NAN);
        }
        assign(to, longer);
      };
      copy(plain.problem.query, padded.problem.query);
      copy(plain.problem.key, padded.problem.key);
      copy(plain.problem.value, padded.problem.value);
      assign(padded.gradients.output, numbers(plain.gradients.output));
      if (plain.gradients.lse) assign(padded.gradients.lse, numbers(plain.gradients.lse));
      padded.problem.key_lengths = padded.storage.values(DType::kInt32, {9});
      expect_same(run_forward(padded).output, run_forward(plain).output, kClose, "output");
      const auto got = run_backward(padded), expected = run_backward(plain);
      expect_same(got[0], expected[0], kClose, "query gradient");
      for (const auto& [array, width] :
           {std::pair{1, padded.problem.key.size[3]}, {2, int64_t(3)}}) {
        const auto real = static_cast<int64_t>(expected[array].size());
        for (int64_t n = 0; n < 16 * width; ++n) {
          expect_close(got[array][n], n < real ? expected[array][n] : 0, bounds::rounded(1));
        }
      }
    }
  }
}

TEST(Rules, OrderDoesNotMatter) {
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      const Case c{
          .score = score.name, .normaliser = normaliser.name, .shape = {2, 2, 2, 7, 11, 4, 3}};
      // A draw depends on positions; ties go to the earlier key; a location's scores have places.
      if (!has_meaning(c) || normaliser.name == "hard_sample" || score.name == "location") continue;
      if ((score.name == "constant" || score.name == "kernel_box") &&
          (normaliser.name == "hard" || normaliser.name == "top_k")) {
        continue;
      }
      SCOPED_TRACE(c.name());
      Built plain = cases::build(c), moved = cases::build(c);
      const auto keys = shuffled(11, moved.storage);
      permute(moved.problem.key, keys);
      permute(moved.problem.value, keys);
      const Numbers expected = run_forward(plain).output;
      double scale = 1;
      for (double x : expected) scale = std::max(scale, std::fabs(x));
      expect_same(run_forward(moved).output, expected, kClose * scale, "keys permuted");
      if (score.name == "kernel_epanechnikov_per_query") continue;
      const auto queries = shuffled(7, moved.storage);
      permute(moved.problem.query, queries);
      permute(plain.result.output, queries);
      expect_same(run_forward(moved).output, numbers(plain.result.output), kClose * scale,
                  "queries permuted");
    }
  }
}

TEST(Rules, CausalIgnoresTheFuture) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const char* structure : {"causal", "strided", "fixed"}) {
      const Case c{.normaliser = normaliser.name,
                   .structure = {structure},
                   .shape = {1, 1, 1, 70, 70, 4, 3}};
      SCOPED_TRACE(c.name());
      Built plain = cases::build(c), changed = cases::build(c);
      for (const View& view : {changed.problem.key, changed.problem.value}) {
        Numbers x = numbers(view);
        for (size_t n = 40 * view.size[3]; n < x.size(); ++n) x[n] += 1;
        assign(view, x);
      }
      const Numbers expected = run_forward(plain).output, got = run_forward(changed).output;
      for (int64_t n = 0; n < 40 * 3; ++n) EXPECT_EQ(got[n], expected[n]) << n;
    }
  }
}

TEST(Rules, DropoutDropsAboutThatManyAndReplays) {
  Case c{.score = "constant",
         .normaliser = "unnormalised",
         .shape = {2, 2, 2, 100, 100, 1, 1},
         .dropout_p = 0.3,
         .seed = 5};
  Built built = cases::build(c);
  assign(built.problem.value, Numbers(2 * 2 * 100, 1.0));
  const Numbers first = run_forward(built).output;
  const double kept = std::accumulate(first.begin(), first.end(), 0.0) * 0.7, pairs = 4 * 100 * 100;
  expect_close(kept, 0.7 * pairs, bounds::hits(pairs, 0.7));
  expect_same(run_forward(built).output, first, 0, "the same seed");
  built.problem.seed = 6;
  EXPECT_NE(run_forward(built).output, first);
}

TEST(Rules, TiesGoToTheLowerIndex) {
  for (const char* normaliser : {"hard", "top_k"}) {
    Built built = cases::build(
        {.score = "location", .normaliser = normaliser, .shape = {1, 1, 1, 1, 40, 40, 1}});
    Numbers scores(40, 0.0), values(40);
    scores[7] = scores[20] = scores[21] = scores[39] = 2;  // k = 3
    std::iota(values.begin(), values.end(), 0.0);
    assign(built.problem.query, scores);
    assign(built.problem.value, values);
    const double expected = std::string(normaliser) == "hard" ? 7 : (7 + 20 + 21) / 3.0;
    expect_close(run_forward(built).output.at(0), expected, bounds::rounded(21), normaliser);
  }
}

TEST(Rules, ScoresOfTenThousandStayFinite) {
  for (const auto& normaliser : cases::normalisers()) {
    Built built = cases::build({.score = "location",
                                .normaliser = normaliser.name,
                                .shape = {1, 1, 1, 20, 70, 70, 3},
                                .content = cases::Content::kLarge});
    for (double x : run_forward(built).output) EXPECT_TRUE(std::isfinite(x)) << normaliser.name;
    for (const auto& array : run_backward(built)) {
      for (double x : array) EXPECT_TRUE(std::isfinite(x)) << normaliser.name;
    }
  }
}

}  // namespace
}  // namespace fovea
