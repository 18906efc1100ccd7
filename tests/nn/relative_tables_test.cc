// Relative positions: against the formula written out, under a shift, with a cache, on edges.
#include "fovea/nn/relative_tables.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/nn/layers.h"

namespace fovea::nn {
namespace {

constexpr int64_t kHeads = 3, kWidth = 4;

struct Case {
  at::Tensor query, key, value;
};
Case drawn(int64_t n, int64_t seed) {
  torch::manual_seed(seed);
  const auto one = [&] { return torch::randn({2, kHeads, n, kWidth}, torch::kDouble); };
  return {one(), one(), one()};
}
RelativeTables tables_of(int64_t clip, int64_t seed = 7) {
  torch::manual_seed(seed);
  RelativeTables out(RelativeTablesOptions{.width = kWidth, .clip = clip});
  out->to(torch::kDouble);
  return out;
}

// [n, n]: the row of the table for each pair.
at::Tensor offsets(int64_t n, int64_t clip) {
  const at::Tensor at = torch::arange(n);
  return (at.unsqueeze(0) - at.unsqueeze(1)).clamp(-clip, clip) + clip;
}

// The formula, with a vector for each pair.
at::Tensor naive(const Case& c, const RelativeTables& tables) {
  const int64_t n = c.query.size(2);
  const at::Tensor which = offsets(n, tables->options().clip);
  const at::Tensor rk = tables->key.index({which}), rv = tables->value.index({which});
  at::Tensor scores =
      (c.query.matmul(c.key.transpose(-2, -1)) + torch::einsum("bhie,ije->bhij", {c.query, rk})) /
      2.0;
  scores = scores.masked_fill(torch::ones({n, n}, torch::kBool).triu(1),
                              -std::numeric_limits<double>::infinity());
  const at::Tensor a = scores.softmax(-1);
  return a.matmul(c.value) + torch::einsum("bhij,ije->bhie", {a, rv});
}

// Huang et al. 2019: q·r for all offsets −(n−1) … 0, moved into place by padding a column and
// reading the rows anew. Nothing of size n·n·E is made.
at::Tensor skewed(const at::Tensor& query, const at::Tensor& table) {
  const int64_t n = query.size(2);
  const at::Tensor all = query.matmul(table.narrow(0, 0, n).t());  // column c: offset c − (n − 1)
  return torch::constant_pad_nd(all, {1, 0}, 0)
      .reshape({query.size(0), query.size(1), n + 1, n})
      .narrow(2, 1, n);
}

TEST(RelativeTables, AreTheFormula) {
  for (const int64_t n : {1, 5, 17}) {
    for (const int64_t clip : {0, 3, 40}) {
      SCOPED_TRACE(testing::Message() << "n " << n << ", clip " << clip);
      const Case c = drawn(n, 3);
      const RelativeTables tables = tables_of(clip);
      const at::Tensor out =
          attend(c.query, c.key, c.value, {.score = tables->score(), .structure = Causal{}});
      EXPECT_TRUE(torch::allclose(out, naive(c, tables), 1e-10, 1e-12));
    }
  }
}

TEST(RelativeTables, SkewedEqualsNaive) {
  constexpr int64_t n = 9;
  const Case c = drawn(n, 5);
  const RelativeTables tables = tables_of(n - 1);
  const at::Tensor naive_scores =
      torch::einsum("bhie,ije->bhij", {c.query, tables->key.index({offsets(n, n - 1)})});
  const at::Tensor below = torch::ones({n, n}, torch::kBool).tril();
  const at::Tensor moved = skewed(c.query, tables->key);
  EXPECT_TRUE(torch::allclose(moved.masked_fill(~below, 0), naive_scores.masked_fill(~below, 0),
                              1e-12, 1e-14));
  // And as a bias it is what the engine adds.
  const at::Tensor none = at::Tensor();
  const at::Tensor by_bias = attend(
      c.query, c.key, c.value, {.score = Score(Dot{}).bias(moved / 2.0), .structure = Causal{}});
  const at::Tensor by_table =
      attend(c.query, c.key, c.value,
             {.score = Score(Dot{}).relative(tables->key, none, n - 1), .structure = Causal{}});
  EXPECT_TRUE(torch::allclose(by_bias, by_table, 1e-10, 1e-12));
}

// The same tokens further right, behind others that they do not see.
TEST(RelativeTables, ShiftTheInputAndTheOutputShifts) {
  constexpr int64_t n = 12, shift = 7;
  const Case c = drawn(n, 11), junk = drawn(shift, 12);
  const RelativeTables tables = tables_of(5);
  const auto behind = [](const at::Tensor& a, const at::Tensor& b) {
    return torch::cat({a, b}, 2);
  };
  const at::Tensor documents =
      torch::cat({torch::zeros({shift}), torch::ones({n})}).to(torch::kInt);
  const at::Tensor here =
      attend(c.query, c.key, c.value, {.score = tables->score(), .structure = Causal{}});
  const at::Tensor there =
      attend(behind(junk.query, c.query), behind(junk.key, c.key), behind(junk.value, c.value),
             {.score = tables->score(), .structure = Causal{} & Documents{documents, documents}})
          .narrow(2, shift, n);
  EXPECT_TRUE(torch::equal(here, there));
}

TEST(RelativeTables, OfZerosArePlainAttention) {
  const Case c = drawn(6, 2);
  const RelativeTables tables = tables_of(4);
  const torch::NoGradGuard no_grad;
  tables->key.zero_();
  tables->value.zero_();
  EXPECT_TRUE(torch::allclose(
      attend(c.query, c.key, c.value, {.score = tables->score(), .structure = Causal{}}),
      attend(c.query, c.key, c.value, {.structure = Causal{}}), 1e-12, 1e-14));
}

TEST(RelativeTables, AStepWithACacheKeepsTrueOffsets) {
  torch::manual_seed(9);
  EncoderLayer layer(LayerOptions{.width = 12,
                                  .heads = 3,
                                  .hidden = 16,
                                  .dropout = 0,
                                  .attention_dropout = 0,
                                  .order = NormOrder::kPre});
  layer->to(torch::kDouble);
  layer->eval();
  const RelativeTables tables = tables_of(3);
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({2, 10, 12}, torch::kDouble);
  const Attention attention{.structure = Causal{}, .score = tables->score()};
  const at::Tensor whole = layer(x, attention);
  StepCache cache;
  for (int64_t at = 0, n = 1; at < 10; at += n, n = std::min<int64_t>(n % 3 + 1, 10 - at))
    EXPECT_TRUE(torch::allclose(layer->step(x.narrow(1, at, n), cache, attention),
                                whole.narrow(1, at, n), 1e-10, 1e-12))
        << "position " << at;
}

struct Edges {
  Graph graph;
  at::Tensor labels;
};
// Node 2 has no edge, node 3 two to the same node with different labels.
Edges edges() {
  return {
      {torch::tensor({0, 2, 3, 3, 6}, torch::kInt), torch::tensor({1, 2, 0, 0, 0, 2}, torch::kInt)},
      torch::tensor({0, 1, 1, 0, 2, 2}, torch::kLong)};
}

TEST(LabelledEdges, AreABiasOfEdgesAndAVectorOfEach) {
  torch::manual_seed(4);
  const auto rows = [](int64_t n) { return torch::randn({n, kHeads, kWidth}, torch::kDouble); };
  const at::Tensor q = rows(4), k = rows(4), v = rows(4);
  const at::Tensor rk = torch::randn({3, kWidth}, torch::kDouble),
                   rv = torch::randn({3, kWidth}, torch::kDouble);
  const Edges e = edges();
  const at::Tensor out = attend_labelled(q, k, v, e.graph, {e.labels, rk, rv});
  // Keys: what a label adds to a score is a bias of its edge.
  const at::Tensor row = torch::tensor({0, 0, 1, 3, 3, 3}, torch::kLong);
  const at::Tensor bias =
      (q.index_select(0, row) * rk.index_select(0, e.labels).unsqueeze(1)).sum(-1) / 2.0;
  const Choices by_bias{.score = Score(Dot{}).edge_bias(bias), .structure = e.graph};
  EXPECT_TRUE(
      torch::allclose(attend_labelled(q, k, v, e.graph, {e.labels, rk, torch::zeros_like(rv)}),
                      attend(q, k, v, by_bias), 1e-10, 1e-12));
  // Values: the weights of a label's edges times its vector.
  const SelectedWeights w = labelled_weights(q, k, e.graph, {e.labels, rk, rv}, {.top_k = 3});
  const at::Tensor weight = w.weights.reshape({kHeads, 4, 3}),
                   at = w.indices.reshape({kHeads, 4, 3});
  at::Tensor added = torch::zeros_like(out);
  for (int64_t h = 0; h < kHeads; ++h)
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t s = 0; s < 3; ++s)
        if (const int64_t edge = at[h][i][s].item<int64_t>(); edge >= 0)
          added[i][h] += weight[h][i][s] * rv[e.labels[edge].item<int64_t>()];
  EXPECT_TRUE(torch::allclose(out, attend(q, k, v, by_bias) + added, 1e-6, 1e-6));
  EXPECT_TRUE(out[2].eq(0).all().item<bool>());  // without an edge
}

TEST(LabelledEdges, AsManyLabelsAsEdges) {
  const Edges e = edges();
  const at::Tensor x = torch::randn({4, 1, 2}), table = torch::randn({3, 2});
  try {
    attend_labelled(x, x, x, e.graph, {torch::zeros({5}, torch::kLong), table, table});
    FAIL() << "five labels for six edges";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "labels: 5, expected 6, one for each edge");
  }
}

TEST(RelativeTables, WrongSizesAreNamed) {
  EXPECT_THROW(RelativeTables(RelativeTablesOptions{.width = 0}), InvalidArgument);
  EXPECT_THROW(RelativeTables(RelativeTablesOptions{.width = 4, .clip = -1}), InvalidArgument);
}

}  // namespace
}  // namespace fovea::nn
