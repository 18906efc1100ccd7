#include "fovea/attend.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "fovea/elementwise.h"

namespace fovea {
namespace {

at::Tensor randn(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble).requires_grad_(); }

// A packed sequence as a batch of one.
at::Tensor unpacked(const at::Tensor& packed, int64_t first, int64_t end) {
  return packed.slice(0, first, end).transpose(0, 1).unsqueeze(0);
}

template <class Error, class Call>
std::string message(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Attend, IsScaledDotProductAttentionByDefault) {
  const auto q = randn({2, 4, 5, 8}), k = randn({2, 4, 7, 8}), v = randn({2, 4, 7, 3});
  EXPECT_TRUE(
      at::allclose(attend(q, k, v), at::scaled_dot_product_attention(q, k, v), 1e-12, 1e-12));
}

TEST(Attend, CompilesAsTheDesignWritesIt) {
  const auto q = randn({6, 2, 8}), k = randn({9, 2, 8}), v = randn({9, 2, 4}), weight = randn({8});
  const auto query_offsets = at::tensor({0, 2, 6}, at::kInt),
             key_offsets = at::tensor({0, 4, 9}, at::kInt);
  auto out = fovea::attend(q, k, v,
                           {.score = fovea::Additive{weight},
                            .normaliser = fovea::Sparsemax{},
                            .structure = fovea::Ragged{query_offsets, key_offsets}});
  EXPECT_EQ(out.sizes(), at::IntArrayRef({6, 2, 4}));
  const auto second =
      fovea::attend(unpacked(q, 2, 6), unpacked(k, 4, 9), unpacked(v, 4, 9),
                    {.score = fovea::Additive{weight}, .normaliser = fovea::Sparsemax{}});
  EXPECT_TRUE(at::allclose(out.slice(0, 2, 6), second.squeeze(0).transpose(0, 1), 1e-12, 1e-12));
}

TEST(Attend, GivesLogSumExpWithGradientAndCountsEmptyRows) {
  const auto q = randn({1, 2, 4, 8}), k = randn({1, 2, 6, 8}), v = randn({1, 2, 6, 3});
  const auto result = attend_full(q, k, v, {.structure = Window{1, -1} & Causal{}});
  const auto scores = (at::matmul(q, k.transpose(-1, -2)) / std::sqrt(8.0))
                          .masked_fill(at::ones({4, 6}, at::kBool).tril().triu(-1).logical_not(),
                                       -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(at::allclose(result.lse, scores.logsumexp(-1), 1e-12, 1e-12));
  EXPECT_EQ(result.empty_rows, 0);
  const torch::autograd::variable_list inputs{q, k};
  const auto ours = torch::autograd::grad({result.lse.sum()}, inputs);
  const auto theirs = torch::autograd::grad({scores.logsumexp(-1).sum()}, inputs);
  for (size_t n = 0; n < 2; ++n) EXPECT_TRUE(at::allclose(ours[n], theirs[n], 1e-10, 1e-10));

  const auto none = attend_full(q, k, v, {.structure = Keep{at::zeros({4, 6}, at::kBool)}});
  EXPECT_EQ(none.empty_rows, 2 * 4);
  EXPECT_TRUE((none.output == 0).all().item<bool>());
  EXPECT_THROW(attend(q, k, v, {.structure = Keep{at::zeros({4, 6}, at::kBool)}},
                      {.allow_empty_rows = false}),
               InvalidArgument);
  EXPECT_NO_THROW(attend(q, k, v, {}, {.allow_empty_rows = false}));
  EXPECT_FALSE(attend_full(q, k, v, {.normaliser = Sparsemax{}}).lse.defined());
}

TEST(Attend, StructuresComposeInAnyNumberAndOrder) {
  const auto q = randn({1, 2, 6, 8}), k = randn({1, 2, 6, 8}), v = randn({1, 2, 6, 3});
  const auto ids = at::tensor({0, 0, 0, 1, 1, 1}, at::kInt);
  const auto i = at::arange(6).unsqueeze(1), j = at::arange(6);
  const Keep near{(i - j).abs() <= 1}, same{ids.unsqueeze(1) == ids}, past{j <= i};
  const Window window{1, 1};
  const Documents documents{ids, ids};
  const auto expect_same = [&](const Structure& composed, const at::Tensor& mask) {
    const auto ours = attend(q, k, v, {.structure = composed}),
               kept = attend(q, k, v, {.structure = Keep{mask}});
    EXPECT_TRUE(at::allclose(ours, kept, 1e-12, 1e-12));
    const auto a = torch::autograd::grad({ours.square().sum()}, {q, k, v}),
               b = torch::autograd::grad({kept.square().sum()}, {q, k, v});
    for (size_t n = 0; n < 3; ++n) EXPECT_TRUE(at::allclose(a[n], b[n], 1e-11, 1e-11)) << n;
  };
  expect_same(window & documents, near.mask & same.mask);
  expect_same(documents & window, near.mask & same.mask);
  expect_same(window & documents & Causal{}, near.mask & same.mask & past.mask);
  expect_same(Causal{} & (window & documents), near.mask & same.mask & past.mask);
  expect_same((window & past) & (same & near), near.mask & same.mask & past.mask);
  const Structure whole = window;
  expect_same(whole & Dense{}, near.mask);
}

TEST(Attend, TakesAUsersOwnFunction) {
  const auto q = randn({1, 2, 4, 8}), k = randn({1, 2, 6, 8}), v = randn({1, 2, 6, 3});
  const auto squared = elementwise(
      [](auto e, const RowPosition& at) { return e * e - 0.1 * double(at.key - at.query); },
      [](auto e, const RowPosition&) { return 2 * e; });
  const auto ours = attend(q, k, v, {.score = Score(Dot{}).custom(squared)});
  const auto distance = at::arange(6, at::kDouble) - at::arange(4, at::kDouble).unsqueeze(1);
  const auto e = at::matmul(q, k.transpose(-1, -2)) / std::sqrt(8.0);
  const auto theirs = at::matmul((e.square() - 0.1 * distance).softmax(-1), v);
  EXPECT_TRUE(at::allclose(ours, theirs, 1e-12, 1e-12));
  const auto a = torch::autograd::grad({ours.square().sum()}, {q, k, v});
  const auto b = torch::autograd::grad({theirs.square().sum()}, {q, k, v});
  for (size_t n = 0; n < 3; ++n) EXPECT_TRUE(at::allclose(a[n], b[n], 1e-10, 1e-10)) << n;
}

TEST(Attend, SelectsWeights) {
  const auto q = randn({1, 2, 4, 8}), k = randn({1, 2, 6, 8});
  const auto all = (at::matmul(q, k.transpose(-1, -2)) / std::sqrt(8.0)).softmax(-1);
  EXPECT_TRUE(at::allclose(weights(q, k).weights, all, 1e-12, 1e-12));
  const auto rows = at::tensor({3, 0}, at::kInt);
  const auto top = weights(q, k, {}, {.rows = rows, .top_k = 2});
  const auto expected = all.index_select(2, rows).topk(2);
  EXPECT_TRUE(at::allclose(top.weights, std::get<0>(expected), 1e-12, 1e-12));
  EXPECT_TRUE(at::equal(top.indices.to(at::kLong), std::get<1>(expected)));
}

TEST(Attend, NamesWhatIsWrong) {
  const auto q = randn({1, 2, 4, 8}), k = randn({1, 2, 6, 8}), v = randn({1, 2, 6, 3});
  EXPECT_EQ(message<InvalidArgument>([&] { attend(q, k.slice(-1, 0, 6), v); }),
            "key: width 6, expected 8 (the query's)");
  EXPECT_EQ(message<InvalidArgument>([&] { attend(q, k, v, {.score = Cosine{}}, {.scale = 2}); }),
            "scale: cosine has none; dot and bilinear have");
  const auto silverman = Kernel{KernelName::kSilverman, at::ones({1}, at::kDouble), {}};
  EXPECT_NE(
      message<Unsupported>([&] { attend(q, k, v, {.score = silverman}); }).find("no logarithm"),
      std::string::npos);
}

TEST(Attend, SaysWhichPathIsTaken) {
  const auto q = randn({1, 2, 4, 8});
  const std::string said = explain_dispatch(q, q, q, {.normaliser = Sigmoid{}});
  EXPECT_TRUE(said.starts_with("engine: taken")) << said;
  EXPECT_NE(said.find("sdpa: "), std::string::npos) << said;
}

}  // namespace
}  // namespace fovea
