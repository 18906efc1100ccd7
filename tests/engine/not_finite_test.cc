// A score of NaN or +infinity makes its own row NaN, forward and backward, on every path; the other
// rows do not notice. check_finite makes it an error. What is masked may hold anything.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/reference/structure.h"
#include "tests/engine/comparison.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

constexpr double kBad[] = {NAN, INFINITY};

bool has_meaning(const Built& built) {
  try {
    engine::explain_dispatch(built.problem);
    return true;
  } catch (const Unsupported&) {
    return false;
  }
}

// Where row `i` of a head lies in an array with `width` numbers per row.
int64_t place(const reference::Structure& structure, const reference::Sequence& sequence,
              int64_t heads, int64_t length, int64_t head, int64_t i, int64_t width) {
  const int64_t row = structure.packed() ? (sequence.first_query + i) * heads + head
                                         : (sequence.batch * heads + head) * length + i;
  return row * width;
}

// A row of the middle of the batch that sees two keys or more.
struct Chosen {
  reference::Sequence sequence;
  int64_t head = -1, row = 0;
  std::vector<int64_t> keys;
};
Chosen choose(const Built& built) {
  const reference::Structure structure(built.problem);
  Chosen chosen;
  for (const auto& sequence : structure.sequences()) {
    for (int64_t head = 0; head < built.problem.query.size[1]; ++head) {
      for (int64_t i = sequence.queries / 2; i < sequence.queries; ++i) {
        const auto keys = structure.keys(sequence, head, i);
        if (keys.size() < 2) continue;
        chosen = {sequence, head, i, keys};
        break;
      }
    }
  }
  return chosen;
}

void expect_like_the_reference(Built& built, const std::string& name) {
  for (const Agreement& a : compare(built, engine::default_parallel())) {
    EXPECT_TRUE(a.within) << name << ": " << a.array << " off by " << a.error << ", allowed "
                          << a.bound;
  }
}

TEST(NotFinite, ARowIsNaNAndTheOthersAreAsWithoutIt) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const auto& structure : cases::structures()) {
      for (const double bad : kBad) {
        const Case c{.modifiers = {"bias"},
                     .normaliser = normaliser.name,
                     .structure = {structure.name},
                     .shape = {2, 2, 1, 9, 11, 4, 3},
                     .content = cases::Content::kPoison};
        SCOPED_TRACE(c.name() + (std::isnan(bad) ? " NaN" : " infinity"));
        Built clean = cases::build(c), dirty = cases::build(c);
        const Chosen chosen = choose(dirty);
        ASSERT_GE(chosen.head, 0);
        const View& bias = std::get<engine::Bias>(dirty.problem.score.modifiers[0]).bias;
        Storage::set(bias,
                     chosen.sequence.batch * bias.stride[0] + chosen.head * bias.stride[1] +
                         chosen.row * bias.stride[2] + chosen.keys.back() * bias.stride[3],
                     bad);
        const Results expected = run_forward(clean), got = run_forward(dirty);
        const auto clean_gradients = run_backward(clean), gradients = run_backward(dirty);
        EXPECT_EQ(got.empty_rows, expected.empty_rows);
        const reference::Structure truth(dirty.problem);
        // Uniform looks at no score; its weights' gradient reaches none either.
        const bool looks = normaliser.name != "uniform";
        const auto compare_rows = [&](const Numbers& a, const Numbers& b, int64_t width,
                                      const char* what) {
          const int64_t row = place(truth, chosen.sequence, 2, 9, chosen.head, chosen.row, width);
          for (int64_t n = 0; n < static_cast<int64_t>(a.size()); ++n) {
            const bool spoiled = looks && n >= row && n < row + width;
            if (spoiled)
              ASSERT_TRUE(std::isnan(a[n])) << what << " " << n;
            else
              ASSERT_TRUE(a[n] == b[n] || (std::isnan(a[n]) && std::isnan(b[n])))
                  << what << " " << n << ": " << a[n] << " and " << b[n];
          }
        };
        compare_rows(got.output, expected.output, 3, "output");
        compare_rows(got.lse, expected.lse, 1, "lse");
        compare_rows(gradients[0], clean_gradients[0], 4, "query gradient");
        expect_like_the_reference(dirty, c.name());
      }
    }
  }
}

TEST(NotFinite, AQueryOfNaNMakesItsRowNaNForEveryScore) {
  for (const auto& score : cases::scores()) {
    for (const char* normaliser : {"softmax", "sparsemax", "entmax_alpha", "unnormalised",
                                   "kernel_ratio", "sigmoid", "top_k", "hard_sample"}) {
      for (const char* structure : {"causal", "keep", "graph"}) {
        const Case c{.score = score.name,
                     .normaliser = normaliser,
                     .structure = {structure},
                     .shape = {1, 2, 1, 9, 11, 4, 3}};
        Built built = cases::build(c);
        if (!has_meaning(built) || score.name == "constant") continue;
        SCOPED_TRACE(c.name());
        const Chosen chosen = choose(built);
        const reference::Structure truth(built.problem);
        const int64_t width = built.problem.query.size[built.problem.query.rank - 1];
        Numbers query = numbers(built.problem.query);
        const int64_t row = place(truth, chosen.sequence, 2, 9, chosen.head, chosen.row, width);
        std::fill_n(query.begin() + row, width, NAN);
        assign(built.problem.query, query);
        const Results results = run_forward(built);
        const int64_t at = place(truth, chosen.sequence, 2, 9, chosen.head, chosen.row, 3);
        for (int64_t n = 0; n < static_cast<int64_t>(results.output.size()); ++n)
          ASSERT_EQ(std::isnan(results.output[n]), n >= at && n < at + 3) << n;
        const auto gradients = run_backward(built);
        for (int64_t n = 0; n < static_cast<int64_t>(gradients[0].size()); ++n) {
          const bool own = n >= row && n < row + width;
          ASSERT_TRUE(own || !std::isnan(gradients[0][n])) << "query gradient " << n;
        }
      }
    }
  }
}

struct PathCase {
  const char* path;  // the id of the path it takes
  Case c;
};

// A key of NaN, seen by some rows: they are NaN, on every path, and no other.
TEST(NotFinite, HoldsOnEveryPath) {
  const PathCase all[] = {
      {"decode", {.structure = {"causal_bottom_right"}, .shape = {2, 2, 1, 3, 1100, 16, 16}}},
      {"decode", {.structure = {"causal_bottom_right"}, .shape = {1, 1, 1, 2, 3000, 16, 16}}},
      {"tiles", {.structure = {"causal"}, .shape = {1, 2, 1, 600, 600, 8, 8}}},
      {"tiles", {.structure = {"window"}, .shape = {1, 2, 1, 600, 600, 8, 8}}},
      {"tiles",
       {.structure = {"causal"}, .shape = {1, 2, 1, 100, 100, 32, 32}, .dtype = DType::kBFloat16}},
      {"tiles",
       {.normaliser = "sparsemax",
        .structure = {"causal"},
        .shape = {1, 4, 4, 100, 300, 8, 8},
        .content = cases::Content::kLarge}},
      {"tiles",
       {.normaliser = "entmax", .structure = {"causal"}, .shape = {1, 4, 4, 100, 300, 8, 8}}},
      {"tiles",
       {.normaliser = "top_k", .structure = {"causal"}, .shape = {1, 4, 4, 100, 300, 8, 8}}},
      {"strided", {.structure = {"strided"}, .shape = {1, 2, 1, 300, 300, 8, 8}}},
      {"strided",
       {.structure = {"strided"}, .shape = {1, 2, 1, 300, 300, 8, 8}, .dtype = DType::kFloat64}},
      {"kernel_mean",
       {.score = "kernel_gaussian",
        .normaliser = "kernel_ratio",
        .structure = {"ragged"},
        .shape = {2, 1, 1, 70, 70, 2, 2}}},
      {"rank_one_graph",
       {.score = "rank_one", .structure = {"graph"}, .shape = {1, 3, 3, 40, 40, 1, 8}}},
      {"graph", {.structure = {"graph", "causal"}, .shape = {1, 2, 1, 40, 40, 8, 8}}},
  };
  for (const auto& [path, c] : all) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    EXPECT_EQ(path_of(built.problem, engine::Task::kForward), path);
    const Chosen chosen = choose(built);
    const int64_t bad = chosen.keys[chosen.keys.size() / 2];
    const reference::Structure truth(built.problem);
    const View& key = built.problem.key;
    const int64_t at = truth.packed() ? (chosen.sequence.first_key + bad) * key.stride[0]
                                      : chosen.sequence.batch * key.stride[0] + bad * key.stride[2];
    Storage::set(key, at, NAN);
    const Numbers output = run_forward(built).output;
    const int64_t heads = built.problem.query.size[1], group = heads / key.size[1];
    int64_t spoiled = 0;
    for (const auto& sequence : truth.sequences()) {
      for (int64_t head = 0; head < heads; ++head) {
        for (int64_t i = 0; i < sequence.queries; ++i) {
          const auto keys = truth.keys(sequence, head, i);
          const bool sees = sequence.batch == chosen.sequence.batch && head / group == 0 &&
                            std::find(keys.begin(), keys.end(), bad) != keys.end();
          spoiled += sees;
          const int64_t width = c.shape.value_width;
          const int64_t row = place(truth, sequence, heads, c.shape.queries, head, i, width);
          for (int64_t n = row; n < row + width; ++n)
            ASSERT_EQ(std::isnan(output[n]), sees) << "head " << head << " row " << i;
        }
      }
    }
    EXPECT_GT(spoiled, 0);
    expect_like_the_reference(built, c.name());
  }
}

TEST(NotFinite, CheckFiniteNamesTheFirstRowAfterAllIsWritten) {
  const Case all[] = {
      {.shape = {3, 2, 2, 9, 11, 4, 3}},
      {.shape = {3, 2, 2, 2, 300, 4, 3}},
      {.normaliser = "entmax", .shape = {3, 2, 2, 9, 11, 4, 3}},
      {.score = "rank_one", .structure = {"graph"}, .shape = {1, 2, 2, 9, 11, 1, 8}},
      {.score = "rank_one", .structure = {"graph"}, .shape = {1, 2, 2, 9, 11, 1, 3}},
      {.structure = {"strided"}, .shape = {1, 2, 2, 300, 300, 4, 3}},
      {.structure = {"ragged"}, .shape = {2, 2, 2, 9, 11, 4, 3}},
  };
  for (const Case& c : all) {
    SCOPED_TRACE(c.name());
    Built built = cases::build(c);
    const Chosen chosen = choose(built);
    ASSERT_EQ(chosen.head, 1);
    const reference::Structure truth(built.problem);
    const int64_t width = built.problem.query.size[built.problem.query.rank - 1];
    Numbers query = numbers(built.problem.query);
    const auto at = [&](int64_t w) {
      return place(truth, chosen.sequence, 2, c.shape.queries, 1, chosen.row, w);
    };
    query[at(width)] = NAN;
    assign(built.problem.query, query);
    const Numbers expected = run_forward(built).output;
    assign(built.result.output, Numbers(expected.size(), 7.0));
    built.problem.check_finite = true;
    try {
      run_forward(built);
      ADD_FAILURE() << "no error";
    } catch (const InvalidArgument& error) {
      const std::string wanted = "batch " + std::to_string(chosen.sequence.batch) +
                                 ", head 1, query " + std::to_string(chosen.row);
      EXPECT_NE(std::string(error.what()).find(wanted), std::string::npos) << error.what();
    }
    expect_same(numbers(built.result.output), expected, 0, "what was written");
    if (truth.packed()) continue;
    const View weights =
        built.storage.zeros(DType::kFloat32, {c.shape.batch, 2, c.shape.queries, c.shape.keys});
    EXPECT_THROW(engine::weights(built.problem, {}, {weights, {}}, serial()), InvalidArgument);
  }
}

TEST(NotFinite, WhatIsMaskedDoesNotCount) {
  for (const auto& normaliser : cases::normalisers()) {
    for (const auto& structure : cases::structures()) {
      Built built = cases::build({.modifiers = {"bias"},
                                  .normaliser = normaliser.name,
                                  .structure = {structure.name},
                                  .shape = {2, 2, 1, 9, 11, 4, 3},
                                  .key_lengths = true,
                                  .content = cases::Content::kPoison});
      built.problem.check_finite = true;
      EXPECT_NO_THROW(run_forward(built)) << normaliser.name << " " << structure.name;
    }
  }
}

TEST(NotFinite, WeightsOfSuchARowAreNaNAtTheKeysItSees) {
  for (const auto& normaliser : cases::normalisers()) {
    if (normaliser.name == "uniform") continue;
    for (const char* structure : {"keep", "graph"}) {
      Built built = cases::build({.normaliser = normaliser.name,
                                  .structure = {structure},
                                  .shape = {1, 2, 1, 9, 100, 4, 3}});
      SCOPED_TRACE(normaliser.name + "/" + structure);
      const Chosen chosen = choose(built);
      const reference::Structure truth(built.problem);
      Numbers query = numbers(built.problem.query);
      query[place(truth, chosen.sequence, 2, 9, chosen.head, chosen.row, 4)] = NAN;
      assign(built.problem.query, query);
      const View weights = built.storage.zeros(DType::kFloat32, {1, 2, 9, 100});
      engine::weights(built.problem, {}, {weights, {}}, serial());
      const Numbers got = numbers(weights);
      const std::set<int64_t> seen(chosen.keys.begin(), chosen.keys.end());
      const int64_t row = (chosen.head * 9 + chosen.row) * 100;
      for (int64_t n = 0; n < static_cast<int64_t>(got.size()); ++n) {
        const bool spoiled = n >= row && n < row + 100 && seen.contains(n - row);
        ASSERT_EQ(std::isnan(got[n]), spoiled) << n;
      }
      const View best = built.storage.zeros(DType::kFloat32, {1, 2, 9, 3}),
                 indices = built.storage.zeros(DType::kInt32, {1, 2, 9, 3});
      engine::Selection top;
      top.top_k = 3;
      engine::weights(built.problem, top, {best, indices}, serial());
      const int64_t at = (chosen.head * 9 + chosen.row) * 3;
      for (int64_t n = 0; n < 3; ++n) {
        EXPECT_TRUE(std::isnan(numbers(best)[at + n]));
        EXPECT_EQ(numbers(indices)[at + n], static_cast<double>(chosen.keys[n]));
      }
    }
  }
}

}  // namespace
}  // namespace fovea
