// Mechanisms that are one another under another name, and the worked examples.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/engine/bounds.h"
#include "tests/engine/run.h"

namespace fovea {
namespace {

using cases::Built;
using cases::Case;
using cases::Storage;
using engine::DType;
using engine::View;

const double kClose = bounds::rounded(1);
constexpr cases::Shape kShape{2, 2, 1, 19, 35, 5, 3};

using Change = std::function<void(Built&)>;

// The case as it is, and the same data with something changed: output, lse and gradients of query,
// key, value agree.
void expect_identity(const Case& c, const Change& change, double tolerance = kClose) {
  SCOPED_TRACE(c.name());
  Built plain = cases::build(c), other = cases::build(c);
  change(other);
  const Results expected = run_forward(plain), got = run_forward(other);
  expect_same(got.output, expected.output, tolerance, "output");
  if (!got.lse.empty() && !expected.lse.empty()) {
    expect_same(got.lse, expected.lse, tolerance, "lse");
  }
  const auto d_expected = run_backward(plain), d_got = run_backward(other);
  for (int array = 0; array < 3; ++array) {
    expect_same(d_got[array], d_expected[array], tolerance, "gradient " + std::to_string(array));
  }
}

// Another structure for the same pairs, for every normaliser.
void expect_same_structure(const char* structure,
                           const std::function<engine::Structure(Built&)>& make) {
  for (const auto& normaliser : cases::normalisers()) {
    expect_identity({.normaliser = normaliser.name, .structure = {structure}, .shape = kShape},
                    [&](Built& b) { b.problem.structure = make(b); });
  }
}

View filled(Storage& storage, std::initializer_list<int64_t> size, DType dtype, double value) {
  const View view = storage.zeros(dtype, size);
  Storage::each(view, [&](int64_t at) { Storage::set(view, at, value); });
  return view;
}

// However large the clip, for which there would be no memory.
TEST(Identities, RelativePositionsWithoutTablesAreNone) {
  expect_identity({.shape = kShape}, [](Built& b) {
    b.problem.score.modifiers.push_back(engine::Relative{.clip = INT32_MAX});
  });
}

TEST(Identities, StructuresThatKeepTheSamePairs) {
  expect_same_structure("dense", [](Built&) { return engine::Window{100, 100}; });
  expect_same_structure("dense", [](Built&) { return engine::Window{-1, -1}; });
  expect_same_structure("dense", [](Built&) { return engine::Structure{}; });
  expect_same_structure("dense", [](Built&) { return engine::Prefix{35}; });
  expect_same_structure("dense", [](Built& b) {
    return engine::Keep{filled(b.storage, {1, 1}, DType::kBool, 1)};
  });
  expect_same_structure("dense", [](Built& b) {
    return engine::Blocks{filled(b.storage, {1, 1, 5, 9}, DType::kBool, 1), 4};
  });
  expect_same_structure("dense", [](Built& b) {
    return engine::Documents{filled(b.storage, {19}, DType::kInt32, 4),
                             filled(b.storage, {35}, DType::kInt32, 4)};
  });
  expect_same_structure("causal", [](Built&) { return engine::Window{-1, 0}; });
  expect_same_structure("causal", [](Built&) { return engine::Prefix{0}; });
  expect_same_structure("causal", [](Built&) { return engine::Strided{1}; });
  expect_same_structure("causal", [](Built&) { return engine::Fixed{64, 0}; });
  expect_same_structure("causal", [](Built&) { return engine::Fixed{3, 3}; });
  expect_same_structure("causal", [](Built&) {
    return engine::Structure(engine::Causal{}) & engine::Structure(engine::Dense{});
  });
  expect_same_structure("causal", [](Built&) { return ~~engine::Structure(engine::Causal{}); });
  expect_same_structure("causal", [](Built&) {
    return ~engine::Window{-1, -1} | engine::Causal{};
  });
  expect_same_structure("prefix",
                        [](Built&) { return engine::Causal{} | engine::First{(35 + 2) / 3}; });
  // De Morgan.
  expect_same_structure("streaming", [](Built&) {
    return ~(~engine::Structure(engine::Causal{}) |
             (~engine::Window{35 / 5, 0} & ~engine::First{2}));
  });
  expect_same_structure("streaming", [](Built&) {
    return (engine::Causal{} & engine::Window{35 / 5, 0}) | (engine::Causal{} & engine::First{2});
  });
  // Bottom right is an offset: the same pairs, and the same draws.
  expect_same_structure("causal_bottom_right", [](Built& b) {
    b.problem.query_offset = 35 - 19;
    return engine::Causal{};
  });
  expect_same_structure("causal_bottom_right", [](Built& b) {
    b.problem.query_offset = 35 - 19;
    return engine::Window{-1, 0};
  });
}

TEST(Identities, AnAndOfTwoStructuresKeepsWhatBothKeep) {
  using engine::Causal, engine::Structure, engine::Window;
  const Window window{.left = 4, .right = 9};
  const Structure list = [&] {
    Structure both;
    both.all_of = {Causal{}, window};
    return both;
  }();
  const Window past{.left = 4, .right = 0};  // the same pairs in one
  for (const Structure& both :
       {Causal{} & window, Structure(Causal{}) & window, Causal{} & Structure(window),
        Structure(Causal{}) & Structure(window), window & window & Causal{}}) {
    EXPECT_GE(both.all_of.size(), 2u);
    for (const Structure& same : {list, Structure(past)}) {
      Built one = cases::build({.shape = kShape}), other = cases::build({.shape = kShape});
      one.problem.structure = both;
      other.problem.structure = same;
      expect_same(run_forward(one).output, run_forward(other).output, kClose, "output");
    }
  }
}

TEST(Identities, KeyLengthsAreAKeepMask) {
  for (const char* normaliser : {"softmax", "sparsemax", "uniform", "unnormalised"}) {
    expect_identity({.normaliser = normaliser, .structure = {"window"}, .shape = kShape},
                    [](Built&) {});
    const Case c{
        .normaliser = normaliser, .structure = {"window"}, .shape = kShape, .key_lengths = true};
    expect_identity(c, [](Built& b) {
      const Numbers lengths = numbers(b.problem.key_lengths);
      const View mask = b.storage.zeros(DType::kBool, {2, 1, 1, 35});
      int64_t n = 0;
      Storage::each(mask, [&](int64_t at) {
        Storage::set(mask, at, static_cast<double>(n % 35) < lengths[n / 35]);
        ++n;
      });
      b.problem.key_lengths = {};
      b.problem.structure = b.problem.structure & engine::Structure(engine::Keep{mask});
    });
  }
}

// [1, H, N, E] as packed (N, H, E), same memory.
View packed(const View& view) {
  View p = view;
  p.rank = 3;
  p.size = {view.size[2], view.size[1], view.size[3], 0};
  p.stride = {view.stride[2], view.stride[1], view.stride[3], 0};
  return p;
}
void pack(Built& b) {
  for (View* view :
       {&b.problem.query, &b.problem.key, &b.problem.value, &b.result.output, &b.result.statistics,
        &b.gradients.output, &b.gradients.query, &b.gradients.key, &b.gradients.value}) {
    *view = packed(*view);
  }
  for (View* view : {&b.result.lse, &b.gradients.lse}) {
    if (!*view) continue;
    view->rank = 2;
    view->size = {view->size[2], view->size[1], 0, 0};
    view->stride = {view->stride[2], view->stride[1], 0, 0};
  }
}
// Numbers of packed arrays come in another order.
void expect_packed_identity(const Case& c, const Change& change) {
  SCOPED_TRACE(c.name());
  Built plain = cases::build(c), other = cases::build(c);
  pack(other);
  change(other);
  run_backward(plain);
  run_backward(other);
  expect_same(numbers(other.result.output), numbers(packed(plain.result.output)), kClose, "output");
  expect_same(numbers(other.gradients.query), numbers(packed(plain.gradients.query)), 2 * kClose,
              "dq");
  expect_same(numbers(other.gradients.key), numbers(packed(plain.gradients.key)), 2 * kClose, "dk");
  expect_same(numbers(other.gradients.value), numbers(packed(plain.gradients.value)), 2 * kClose,
              "dv");
}

TEST(Identities, ACompleteGraphIsDenseAndSoIsOneRaggedSequence) {
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      if (score.name == "kernel_silverman" && normaliser.name != "kernel_ratio") continue;
      const Case c{
          .score = score.name, .normaliser = normaliser.name, .shape = {1, 2, 1, 6, 9, 4, 3}};
      expect_packed_identity(c, [](Built& b) {
        Numbers rows = {0}, columns;
        for (int i = 0; i < 6; ++i) {
          for (int j = 0; j < 9; ++j) columns.push_back(j);
          rows.push_back(9 * (i + 1));
        }
        b.problem.structure = engine::Graph{b.storage.values(DType::kInt32, rows),
                                            b.storage.values(DType::kInt32, columns)};
      });
      expect_packed_identity(c, [](Built& b) {
        b.problem.structure = engine::Ragged{b.storage.values(DType::kInt32, {0, 6}),
                                             b.storage.values(DType::kInt32, {0, 9})};
      });
    }
  }
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
  expect_identity(c, with(entmax(2)), 2e-5);
  Case exact{.normaliser = "entmax", .shape = kShape};
  expect_identity(exact, with(entmax(1.5000001)), 2e-5);
  Case smooth{.normaliser = "unnormalised", .shape = kShape, .dtype = DType::kFloat64};
  Built softmax = cases::build(smooth), near_one = cases::build(smooth);
  with(engine::Softmax{})(softmax);
  with(entmax(1.0001))(near_one);
  expect_same(run_forward(near_one).output, run_forward(softmax).output, 1e-3, "alpha to 1");
  with(entmax(1))(near_one);
  expect_same(run_forward(near_one).output, run_forward(softmax).output, 1e-12, "alpha 1");
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
    expect_identity(c, add(engine::SoftCap{1e4}, engine::SoftCap{1e4}), 1e-5);
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
