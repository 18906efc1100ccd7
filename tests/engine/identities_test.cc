// Scores, normalisers and modifiers that are one another under another name, and the worked examples.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/identity.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

// However large the clip, for which there would be no memory.
TEST(Identities, RelativePositionsWithoutTablesAreNone) {
  expect_identity({.shape = kShape}, [](Built& b) {
    b.problem.score.modifiers.push_back(engine::Relative{.clip = INT32_MAX});
  });
}

TEST(Identities, SoftmaxIgnoresAConstantShift) {
  for (const char* normaliser : {"softmax", "sparsemax", "entmax", "entmax_1.3", "top_k", "hard"}) {
    Case c{.normaliser = normaliser, .shape = kShape};
    SCOPED_TRACE(c.name());
    Built plain = cases::build(c), shifted = cases::build(c);
    shifted.problem.score.modifiers.push_back(
        engine::Bias{filled(shifted.storage, {1}, DType::kFloat32, 3)});
    shifted.gradients.score = shifted.problem.score;
    shifted.gradients.score.modifiers[0] = engine::Bias{};
    expect_same(run_forward(shifted).output, run_forward(plain).output, kClose, "output");
  }
}

TEST(Identities, SplitThenMergeIsTheWhole) {
  const Case c{.shape = {1, 1, 1, 9, 150, 8, 5}};
  Built whole = cases::build(c), left = cases::build(c), right = cases::build(c);
  constexpr int64_t kCut = 71;
  for (auto [part, first, count] :
       {std::tuple{&left, int64_t(0), kCut}, {&right, kCut, 150 - kCut}}) {
    for (View* view : {&part->problem.key, &part->problem.value}) {
      view->data = static_cast<float*>(view->data) + first * view->stride[2];
      view->size[2] = count;
    }
  }
  const Results all = run_forward(whole), a = run_forward(left), b = run_forward(right);
  for (size_t n = 0; n < all.output.size(); ++n) {
    const size_t row = n / 5;
    const double merged = std::exp(a.lse[row] - all.lse[row]) * a.output[n] +
                          std::exp(b.lse[row] - all.lse[row]) * b.output[n];
    expect_close(merged, all.output[n], bounds::rounded(1));
  }
}

TEST(Identities, AGaussianKernelIsASoftmaxOfSquaredDistances) {
  const Case c{
      .score = "kernel_gaussian", .normaliser = "kernel_ratio", .shape = {1, 1, 1, 6, 40, 3, 2}};
  Built ratio = cases::build(c), softmax = cases::build(c), location = cases::build(c);
  softmax.problem.normaliser = engine::Softmax{};
  const Numbers q = numbers(ratio.problem.query), k = numbers(ratio.problem.key);
  const auto& kernel = std::get<engine::Kernel>(ratio.problem.score.kind);
  const double h = numbers(kernel.bandwidth)[0];
  Numbers scores;
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 40; ++j) {
      double square = 0;
      for (int n = 0; n < 3; ++n) square += std::pow(q[i * 3 + n] - k[j * 3 + n], 2);
      scores.push_back(-square / (2 * h * h));
    }
  }
  location.problem.score = engine::Location{};
  location.problem.normaliser = engine::Softmax{};
  location.problem.query = location.storage.zeros(DType::kFloat32, {1, 1, 6, 40});
  assign(location.problem.query, scores);
  const Numbers expected = run_forward(ratio).output;
  expect_same(run_forward(softmax).output, expected, kClose, "softmax of log K");
  expect_same(run_forward(location).output, expected, kClose, "softmax of -|q - k|^2 / 2h^2");
}

TEST(Identities, AGaussianKernelOfUnitVectorsIsADotProductOverSquaredBandwidth) {
  const Case c{
      .score = "kernel_gaussian", .normaliser = "kernel_ratio", .shape = {1, 2, 1, 6, 40, 4, 2}};
  Built gaussian = cases::build(c), dot = cases::build(c);
  for (Built* b : {&gaussian, &dot}) {
    for (const View& view : {b->problem.query, b->problem.key}) {
      Numbers x = numbers(view);
      for (size_t row = 0; row < x.size(); row += 4) {
        const double norm = std::sqrt(x[row] * x[row] + x[row + 1] * x[row + 1] +
                                      x[row + 2] * x[row + 2] + x[row + 3] * x[row + 3]);
        for (int n = 0; n < 4; ++n) x[row + n] /= norm;
      }
      assign(view, x);
    }
  }
  const double h = numbers(std::get<engine::Kernel>(gaussian.problem.score.kind).bandwidth)[0];
  dot.problem.score = engine::Dot{.scale = 1 / (h * h)};
  dot.problem.normaliser = engine::Softmax{};
  expect_same(run_forward(dot).output, run_forward(gaussian).output, kClose, "output");
}

TEST(Identities, AKernelFarFromAllKeysIsStillARatio) {
  for (const char* score :
       {"kernel_gaussian", "kernel_laplace", "kernel_logistic", "kernel_sigmoid"}) {
    Built built = cases::build(
        {.score = score, .normaliser = "kernel_ratio", .shape = {1, 1, 1, 1, 2, 1, 1}});
    assign(built.problem.query, {1e4});
    assign(built.problem.key, {1, 0});
    assign(built.problem.value, {5, 7});
    auto& kernel = std::get<engine::Kernel>(built.problem.score.kind);
    assign(kernel.bandwidth, {0.01});
    expect_close(run_forward(built).output[0], 5, bounds::rounded(5), score);  // the nearer key
  }
}

TEST(Identities, EntmaxMeetsItsNeighbours) {
  const auto with = [](engine::Normaliser normaliser) {
    return [normaliser](Built& b) {
      b.problem.normaliser = normaliser;
      b.gradients.normaliser = normaliser;
      b.result.lse = b.gradients.lse = {};
    };
  };
  const auto entmax = [](double alpha) { return engine::Entmax{alpha, {}}; };
  const Case c{.normaliser = "sparsemax", .shape = kShape};
  expect_identity(c, with(entmax(2)));
  Case exact{.normaliser = "entmax", .shape = kShape};
  expect_identity(exact, with(entmax(1.5000001)));
  Case smooth{.normaliser = "unnormalised", .shape = kShape, .dtype = DType::kFloat64};
  Built softmax = cases::build(smooth), near_one = cases::build(smooth);
  with(engine::Softmax{})(softmax);
  with(entmax(1.0001))(near_one);
  expect_same(run_forward(near_one).output, run_forward(softmax).output, 1e-3, "alpha to 1");
  with(entmax(1))(near_one);
  expect_same(run_forward(near_one).output, run_forward(softmax).output,
              bounds::rounded(1, bounds::kDoubleUlp), "alpha 1");
}

TEST(Identities, TopKOfAllIsSoftmaxAndOfOneIsHard) {
  expect_identity({.normaliser = "softmax", .shape = kShape}, [](Built& b) {
    b.problem.normaliser = b.gradients.normaliser = engine::TopK{35};
  });
  for (int64_t more : {int64_t{36}, INT64_MAX / 2}) {  // all there are
    expect_identity({.normaliser = "softmax", .shape = kShape}, [&](Built& b) {
      b.problem.normaliser = b.gradients.normaliser = engine::TopK{more};
    });
  }
  Built hard = cases::build({.normaliser = "hard", .shape = kShape});
  Built top = cases::build({.normaliser = "hard", .shape = kShape});
  top.problem.normaliser = engine::TopK{1};
  expect_same(run_forward(top).output, run_forward(hard).output, 0, "output");
}

TEST(Identities, ModifiersThatDoNothing) {
  for (const auto& normaliser : cases::normalisers()) {
    const Case c{.normaliser = normaliser.name, .structure = {"causal"}, .shape = kShape};
    const auto add = [](engine::Modifier modifier, engine::Modifier nothing) {
      return [=](Built& b) {
        b.problem.score.modifiers.push_back(modifier);
        b.gradients.score.modifiers.push_back(nothing);
      };
    };
    Storage storage(1);
    expect_identity(c, add(engine::Relative{storage.zeros(DType::kFloat32, {9, 5}),
                                            storage.zeros(DType::kFloat32, {9, 3}), 4},
                           engine::Relative{}));
    expect_identity(c, add(engine::Alibi{storage.zeros(DType::kFloat32, {2})}, engine::Alibi{}));
    expect_identity(c, add(engine::Bias{storage.zeros(DType::kFloat32, {19, 35})}, engine::Bias{}));
    expect_identity(c, add(engine::SoftCap{1e4}, engine::SoftCap{1e4}));
  }
}

TEST(Identities, AlibiIsABias) {
  const Case c{.modifiers = {"alibi"}, .shape = kShape};
  expect_identity(c, [](Built& b) {
    const Numbers slopes = numbers(std::get<engine::Alibi>(b.problem.score.modifiers[0]).slopes);
    const View bias = b.storage.zeros(DType::kFloat32, {2, 19, 35});
    int64_t n = 0;
    Storage::each(bias, [&](int64_t at) {
      const int64_t j = n % 35, i = n / 35 % 19, head = n / 35 / 19;
      Storage::set(bias, at, -slopes[head] * static_cast<double>(std::abs(i - j)));
      ++n;
    });
    b.problem.score.modifiers[0] = engine::Bias{bias};
    b.gradients.score.modifiers[0] = engine::Bias{};
  });
}

TEST(Identities, PoolingIsAttentionThatAsksNothing) {
  // Softmax of a zero query, of a constant score, and the uniform normaliser: the mean of the
  // values.
  Built zero = cases::build({.shape = kShape}),
        constant = cases::build({.score = "constant", .shape = kShape});
  Built uniform = cases::build({.normaliser = "uniform", .shape = kShape});
  assign(zero.problem.query, Numbers(2 * 2 * 19 * 5, 0.0));
  assign(constant.problem.value, numbers(zero.problem.value));
  assign(uniform.problem.value, numbers(zero.problem.value));
  const Numbers mean = run_forward(uniform).output;
  const Numbers v = numbers(zero.problem.value);
  double first = 0;
  for (int j = 0; j < 35; ++j) first += v[j * 3] / 35;
  expect_close(mean[0], first, bounds::rounded(1));
  expect_same(run_forward(zero).output, mean, kClose, "zero query");
  expect_same(run_forward(constant).output, mean, kClose, "constant score");
  // The sum: a constant score, not normalised.
  Built sum = cases::build({.score = "constant", .normaliser = "unnormalised", .shape = kShape});
  assign(sum.problem.value, v);
  Numbers scaled = run_forward(sum).output;
  for (double& x : scaled) x /= 35;
  expect_same(scaled, mean, kClose, "sum");
}

TEST(Identities, GroupedHeadsAreRepeatedHeads) {
  const Case c{.structure = {"causal"}, .shape = {1, 4, 2, 9, 9, 4, 3}};
  Built grouped = cases::build(c);
  Case whole = c;
  whole.shape.key_heads = 4;
  Built repeated = cases::build(whole);
  assign(repeated.problem.query, numbers(grouped.problem.query));
  for (auto [from, to, width] : {std::tuple{grouped.problem.key, repeated.problem.key, 4},
                                 {grouped.problem.value, repeated.problem.value, 3}}) {
    const Numbers x = numbers(from);
    Numbers twice;
    for (int head = 0; head < 4; ++head) {
      twice.insert(twice.end(), x.begin() + head / 2 * 9 * width,
                   x.begin() + (head / 2 + 1) * 9 * width);
    }
    assign(to, twice);
  }
  expect_same(run_forward(repeated).output, run_forward(grouped).output, 0, "output");
}

TEST(Identities, ASinkFarBelowIsNoSink) {
  expect_identity({.shape = kShape}, [](Built& b) {
    b.problem.normaliser = engine::Softmax{filled(b.storage, {2}, DType::kFloat32, -1e4)};
    b.gradients.normaliser = engine::Softmax{};
  });
}

TEST(Identities, TheWorkedExampleOfScaledDotProduct) {
  // Width 64, products 112 and 96: divided by 8, weights 0.8808 and 0.1192.
  Built built = cases::build({.shape = {1, 1, 1, 1, 2, 64, 2}});
  Numbers query(64, 0.0), key(128, 0.0);
  query[0] = 8;
  key[0] = 14;
  key[64] = 12;
  assign(built.problem.query, query);
  assign(built.problem.key, key);
  assign(built.problem.value, {1, 0, 0, 1});
  const Numbers weights = run_forward(built).output;
  expect_close(weights[0], 1 / (1 + std::exp(-2.0)), bounds::rounded(1));
  expect_close(weights[0], 0.8808, bounds::decimals(4));
  expect_close(weights[1], 0.1192, bounds::decimals(4));
  built.problem.score = engine::Dot{.scale = 1};
  expect_close(run_forward(built).output[1], std::exp(-16.0), bounds::rounded(std::exp(-16.0)));
}

}  // namespace
}  // namespace fovea
