// How memory heads find their rows: each equation against a loop or by hand.
#include "nn/addressing.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "fovea/attend.h"
#include "tests/nn/distance.h"

namespace fovea::nn::addressing_test {
namespace {

using test::distance;

at::Tensor doubles(at::IntArrayRef sizes) { return torch::randn(sizes, torch::kFloat64); }
at::Tensor fractions(at::IntArrayRef sizes) { return torch::rand(sizes, torch::kFloat64); }
at::Tensor row(std::vector<double> numbers) {
  return torch::tensor(numbers, torch::kFloat64).view({1, 1, -1});
}

TEST(Addressing, ACircularShiftByHand) {
  // s(-1) = 0.5, s(0) = 0.2, s(1) = 0.3: each row takes half of the next, 0.3 of the one before.
  const at::Tensor out = circular_shift(row({0.1, 0.2, 0.3, 0.4}), row({0.5, 0.2, 0.3}));
  EXPECT_LT(distance(out, row({0.1 + 0.02 + 0.12, 0.15 + 0.04 + 0.03, 0.2 + 0.06 + 0.06,
                               0.05 + 0.08 + 0.09})),
            1e-15);
  // All of it by one row, around the end.
  EXPECT_LT(distance(circular_shift(row({0, 0, 1}), row({0, 0, 1})), row({1, 0, 0})), 1e-15);
  EXPECT_LT(distance(circular_shift(row({1, 0, 0}), row({1, 0, 0})), row({0, 0, 1})), 1e-15);
  // By two rows; and a memory of one row has nowhere to go.
  EXPECT_LT(distance(circular_shift(row({1, 0, 0, 0}), row({0, 0, 0, 0, 1})), row({0, 0, 1, 0})),
            1e-15);
  EXPECT_LT(distance(circular_shift(row({1}), row({0.5, 0.2, 0.3})), row({1})), 1e-15);
}

TEST(Addressing, SharpeningByHandAndWhereWeightsVanish) {
  const auto gamma = [](double value) { return row({value}); };
  EXPECT_LT(distance(sharpened(row({0.5, 0.25, 0.25}), gamma(2)), row({2. / 3, 1. / 6, 1. / 6})),
            1e-12);
  EXPECT_LT(distance(sharpened(row({0.5, 0.25, 0.25}), gamma(1)), row({0.5, 0.25, 0.25})), 1e-12);
  // Powers of float weights that underflow would leave 0 / 0.
  const at::Tensor w = torch::tensor({{{0.0f, 0.3f, 0.2f}}}).requires_grad_(),
                   g = torch::full({1, 1, 1}, 400.0f).requires_grad_();
  const at::Tensor out = sharpened(w, g);
  EXPECT_LT(distance(out.detach(), torch::tensor({{{0.0f, 1.0f, 0.0f}}})), 1e-6);
  out.select(2, 1).sum().backward();
  EXPECT_TRUE(w.grad().isfinite().all().item<bool>());
  EXPECT_TRUE(g.grad().isfinite().all().item<bool>());
}

// β folded into the query is the engine's cosine with a β for each head, with the same gradients.
TEST(Addressing, ContentEqualsTheEnginesCosineWhereRowsAreNotNearZero) {
  torch::manual_seed(1);
  const int64_t heads = 3;
  const at::Tensor beta = (1 + 3 * fractions({heads})).requires_grad_(),
                   key = (1e4 * doubles({1, heads, 5})).requires_grad_(),
                   memory = (1e4 * doubles({1, 7, 5})).requires_grad_(),
                   out = doubles({1, heads, 7});
  const std::vector<at::Tensor> leaves = {beta, key, memory};
  const at::Tensor ours = content_weights(key, beta.view({1, heads, 1}), memory);
  const at::Tensor identity = torch::eye(7, torch::kFloat64).expand({1, heads, 7, 7});
  const at::Tensor cosine = attend(key.unsqueeze(2), memory.unsqueeze(1).expand({1, heads, 7, 5}),
                                   identity, {.score = Cosine{beta}})
                                .squeeze(2);
  EXPECT_LT(distance(ours, cosine), 1e-12);
  EXPECT_LT(distance(ours.sum(2), torch::ones({1, heads}, torch::kFloat64)), 1e-12);
  const auto expected = torch::autograd::grad({(cosine * out).sum()}, leaves),
             got = torch::autograd::grad({(ours * out).sum()}, leaves);
  for (size_t i = 0; i < leaves.size(); ++i)
    EXPECT_LT(distance(got[i], expected[i]),
              1e-10 * (1e-4 + expected[i].abs().max().item<double>()))
        << i;
}

TEST(Addressing, RowsOfZerosAreAllAlikeAndHaveGradients) {
  const at::Tensor memory = torch::zeros({2, 4, 3}, torch::kFloat64).requires_grad_(),
                   key = doubles({2, 1, 3}).requires_grad_();
  const at::Tensor w = content_weights(key, torch::full({2, 1, 1}, 5.0, torch::kFloat64), memory);
  EXPECT_LT(distance(w, torch::full({2, 1, 4}, 0.25, torch::kFloat64)), 1e-15);
  w.select(2, 0).sum().backward();
  EXPECT_TRUE(memory.grad().isfinite().all().item<bool>());
  // 5 cos has a slope of 5 / √ε at most.
  EXPECT_LT(memory.grad().abs().max().item<double>(), 5 / 1e-3);
  EXPECT_TRUE(key.grad().isfinite().all().item<bool>());
}

TEST(Addressing, ReadsAndWritesEqualLoops) {
  torch::manual_seed(2);
  const int64_t n = 4, width = 3, heads = 2;
  const at::Tensor memory = doubles({1, n, width}), w = fractions({1, heads, n}),
                   erase = fractions({1, heads, width}), add = doubles({1, heads, width});
  const auto M = memory.accessor<double, 3>(), W = w.accessor<double, 3>(),
             E = erase.accessor<double, 3>(), A = add.accessor<double, 3>();
  at::Tensor reads = torch::zeros({1, heads, width}, torch::kFloat64), after = memory.clone();
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < width; ++c) {
      double kept = M[0][i][c], added = 0;
      for (int64_t h = 0; h < heads; ++h) {
        reads[0][h][c] += W[0][h][i] * M[0][i][c];
        kept *= 1 - W[0][h][i] * E[0][h][c];
        added += W[0][h][i] * A[0][h][c];
      }
      after[0][i][c] = kept + added;
    }
  EXPECT_LT(distance(read_rows(w, memory), reads), 1e-14);
  EXPECT_LT(distance(written(memory, w, erase, add), after), 1e-14);
}

TEST(Addressing, UsageEqualsALoop) {
  torch::manual_seed(3);
  const int64_t n = 5, heads = 2;
  const at::Tensor usage = fractions({1, n}), write = fractions({1, n}),
                   gates = fractions({1, heads, 1}), read = fractions({1, heads, n});
  at::Tensor expected = torch::zeros({1, n}, torch::kFloat64);
  for (int64_t i = 0; i < n; ++i) {
    const double u = usage[0][i].item<double>(), w = write[0][i].item<double>();
    double retention = 1;
    for (int64_t r = 0; r < heads; ++r)
      retention *= 1 - gates[0][r][0].item<double>() * read[0][r][i].item<double>();
    expected[0][i] = (u + w - u * w) * retention;
  }
  EXPECT_LT(distance(usage_after(usage, write, gates, read), expected), 1e-14);
}

std::vector<double> allocation_loop(const std::vector<double>& usage) {
  std::vector<size_t> order(usage.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return usage[a] < usage[b]; });
  std::vector<double> out(usage.size());
  double product = 1;
  for (const size_t i : order) {
    out[i] = (1 - usage[i]) * product;
    product *= usage[i];
  }
  return out;
}

TEST(Addressing, AllocationEqualsALoopAndTakesTheLowerOfEqualRows) {
  for (const std::vector<double>& usage : {std::vector<double>{0.3, 0.9, 0.1, 0.5},
                                           {0.2, 0.2, 0.2},
                                           {1, 1, 1, 1},
                                           {0.7},
                                           {1, 0.4, 1, 0.4, 0.9}}) {
    const at::Tensor got = allocation(torch::tensor(usage, torch::kFloat64).unsqueeze(0));
    EXPECT_LT(distance(got, torch::tensor(allocation_loop(usage), torch::kFloat64).unsqueeze(0)),
              1e-5);  // usage is kept 1e-6 off zero
    EXPECT_LE(got.sum().item<double>(), 1 + 1e-12);
  }
  // An empty memory: row 0, and it alone.
  const at::Tensor empty = allocation(torch::zeros({1, 6}, torch::kFloat64));
  EXPECT_NEAR(empty[0][0].item<double>(), 1, 1e-5);
  // Of 300 rows in use the product underflows in float; it and its gradient stay finite.
  const at::Tensor many = torch::full({1, 300}, 1e-4f).requires_grad_();
  const at::Tensor share = allocation(many);
  share.sum().backward();
  EXPECT_TRUE(share.isfinite().all().item<bool>());
  EXPECT_TRUE(many.grad().isfinite().all().item<bool>());
}

TEST(Addressing, LinksAndPrecedenceEqualALoop) {
  torch::manual_seed(4);
  const int64_t n = 5;
  at::Tensor links = torch::zeros({1, n, n}, torch::kFloat64),
             precedence = torch::zeros({1, n}, torch::kFloat64);
  std::vector<std::vector<double>> L(5, std::vector<double>(5));
  std::vector<double> p(5);
  for (int step = 0; step < 6; ++step) {
    const at::Tensor write = fractions({1, n}).softmax(1) * 0.9;
    std::vector<double> w(write.data_ptr<double>(), write.data_ptr<double>() + n);
    for (size_t i = 0; i < 5; ++i)
      for (size_t j = 0; j < 5; ++j)
        L[i][j] = i == j ? 0 : (1 - w[i] - w[j]) * L[i][j] + w[i] * p[j];
    const double sum = std::accumulate(w.begin(), w.end(), 0.0);
    for (size_t i = 0; i < 5; ++i) p[i] = (1 - sum) * p[i] + w[i];
    links = links_after(links, precedence, write);
    precedence = precedence_after(precedence, write);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_NEAR(precedence[0][i].item<double>(), p[static_cast<size_t>(i)], 1e-14);
      for (int64_t j = 0; j < n; ++j)
        EXPECT_NEAR(links[0][i][j].item<double>(),
                    L[static_cast<size_t>(i)][static_cast<size_t>(j)], 1e-14);
    }
  }
}

}  // namespace
}  // namespace fovea::nn::addressing_test
