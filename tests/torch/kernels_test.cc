// The device texts, compiled for the host, against the reference: forward and backward, through the
// same host code that launches them on a CUDA device, with NaN wherever no query looks.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <cstdlib>

#include "engine/call/meaning.h"
#include "engine/reference/reference.h"
#include "tests/torch/against_reference.h"
#include "tests/torch/emulated_device.h"
#include "torch/composed/composed.h"
#include "torch/cuda/fill.h"
#include "torch/cuda/fused.h"
#include "torch/cuda/runtime/nvrtc.h"
#include "torch/engine_call.h"

namespace fovea {
namespace {

// The device texts on the host.
const Form kKernels{
    .forward = [](const Call& call, bool with_lse) -> std::optional<Form::Results> {
      if (!cuda::kernels_decline(call).empty()) return std::nullopt;
      cuda::EmulatedDevice device;
      auto sizes = call.query.sizes().vec();
      sizes.back() = call.value.size(-1);
      const auto filled = [&](at::IntArrayRef shape) {
        return at::full(shape, -7.5, call.query.options());  // a place that is not written shows
      };
      const cuda::Places places{
          filled(sizes),
          with_lse ? filled(call.query.sizes().slice(0, call.query.dim() - 1)) : at::Tensor(),
          filled({call.query.numel() / call.query.size(-1), 4}), at::full({}, 5, at::kLong)};
      cuda::forward(device, call, places);
      return Form::Results{places.output, places.lse, places.empty_rows, places.statistics};
    },
    .backward = [](const Call& call, const Form::Results& got, const at::Tensor& d_output,
                   const at::Tensor& d_lse,
                   const std::vector<int64_t>& wanted) -> std::vector<at::Tensor> {
      if (!cuda::gradients_decline(call, wanted).empty()) return {};
      cuda::EmulatedDevice device;
      return cuda::backward(device, call, d_output, d_lse, got.output, got.statistics, wanted);
    }};

bool check(
    const Case& c, const std::function<void(cases::Built&)>& change = [](auto&) {}) {
  return fovea::check(kKernels, c, change);
}

// Case n of a walk through the four tables at once, each from its start again when it ends: 31 steps
// meet every row of every table.
Case step(size_t n) {
  const auto row = [&](const auto& table) { return table[n % table.size()].name; };
  Case c = with(row(cases::scores()), row(cases::normalisers()), row(cases::structures()));
  c.seed = n + 1;
  c.content = cases::Content::kPoison;
  c.layout = n % 2 ? cases::Layout::kStrided : cases::Layout::kContiguous;
  c.shape.heads = n % 3 ? 2 : 4;
  if (n % 4 == 1) c.dropout_p = 0.3;
  c.key_lengths = n % 5 == 2;
  c.query_offset = n % 7 == 3;
  return c;
}

// Parts, so that they run side by side.
class KernelsWalk : public testing::TestWithParam<size_t> {};
constexpr size_t kParts = 4;

TEST_P(KernelsWalk, IsTheReference) {
  int ran = 0;
  for (size_t n = GetParam(); n < cases::scores().size(); n += kParts) ran += check(step(n));
  EXPECT_GT(ran, 3);
}

// Modifiers are a dot product's: the rest in another order.
TEST_P(KernelsWalk, IsTheReferenceWithModifiers) {
  const auto& modifiers = cases::modifiers();
  int ran = 0;
  for (size_t n = GetParam(); n < modifiers.size(); n += kParts) {
    Case c = step(n + 5);
    c.score = "dot";
    c.modifiers = {modifiers[n].name};
    ran += check(c);
  }
  EXPECT_GT(ran, 0);
}

INSTANTIATE_TEST_SUITE_P(Parts, KernelsWalk, testing::Range(size_t{0}, kParts));

// More than one tile of queries and of keys, and more columns than a chunk.
TEST(Kernels, AreTheReferenceBeyondOneTile) {
  for (const char* normaliser : {"softmax", "sparsemax"}) {
    Case c = with("dot", normaliser, "window");
    c.shape = {1, 2, 1, 70, 75, 70, 66};
    c.modifiers = {"bias_pair"};
    check(c);
  }
}

TEST(Kernels, AreTheReferenceWhereAScoreIsNotANumber) {
  for (const char* normaliser : {"softmax_sink", "entmax_alpha", "top_k"}) {
    for (const char* structure : {"window", "graph"}) {
      Case c = with("dot", normaliser, structure);
      c.modifiers = {"bias"};
      c.content = cases::Content::kPoison;
      check(c, [](cases::Built& built) { spoil(built, NAN); });
    }
  }
}

// Points of few dimensions have a driver of their own; more than 1,024 of a side are met in parts.
TEST(KernelsOnPoints, AreTheReference) {
  constexpr std::array kNormalisers = {"kernel_ratio", "softmax", "unnormalised"};
  int ran = 0;
  for (const auto& score : cases::scores()) {
    if (!std::string(score.name).starts_with("kernel")) continue;
    Case c =
        with(score.name, kNormalisers[static_cast<size_t>(ran) % kNormalisers.size()], "dense");
    c.shape = {2, 4, 2, 5, 7, 3, 2};
    c.layout = cases::Layout::kStrided;
    c.key_lengths = true;
    c.content = cases::Content::kPoison;
    ran += check(c);
  }
  EXPECT_GT(ran, 12);
}

TEST(KernelsOnPoints, TakeTheirDriverAndMeetManyKeysInParts) {
  at::manual_seed(5);
  const auto options = at::TensorOptions(at::kDouble);
  Call given{at::randn({1, 1, 5, 3}, options),
             at::randn({1, 1, 2100, 3}, options),
             at::randn({1, 1, 2100, 1}, options),
             {},
             {},
             0,
             7};
  given.choices = {Kernel{choice::KernelName::kGaussian, at::tensor({0.7}, options)}, KernelRatio{},
                   Dense{}};
  const Call call = canonical(given);
  ASSERT_TRUE(cuda::forward_program(call).on_points);
  cuda::EmulatedDevice device;
  ASSERT_GT(cuda::parts_of(device, 1, 2100), 1);
  const at::NoGradGuard guard;
  const auto truth = composed::attend(call);
  const cuda::Places places{at::full_like(truth.output, -7.5),
                            {},
                            at::full({1, 1, 5, 4}, -7.5, options),
                            at::full({}, 5, at::kLong)};
  cuda::forward(device, call, places);
  EXPECT_TRUE(at::allclose(places.output, truth.output, 1e-12, 1e-12));
  const at::Tensor d_output = at::randn_like(places.output);
  const std::vector<int64_t> wanted(4, 1);
  const auto got =
      cuda::backward(device, call, d_output, {}, places.output, places.statistics, wanted);
  const auto expected = composed::backward(call, d_output, {}, wanted);
  for (size_t n = 0; n < 4; ++n) EXPECT_TRUE(at::allclose(got[n], expected[n], 1e-10, 1e-11)) << n;
}

// Dot products of float32 and float64 have one too. Several tiles of both sides; weights that are few and
// many; rows that are no whole pieces of 16 bytes.
TEST(KernelsOnPanels, AreTheReference) {
  for (const char* normaliser : {"softmax_sink", "sparsemax", "entmax_alpha", "top_k", "sigmoid"}) {
    Case c = with("dot_scaled", normaliser, "window");
    c.shape = {1, 2, 1, 70, 150, 33, 40};
    c.modifiers = {"alibi"};
    c.layout = cases::Layout::kStrided;
    c.content = cases::Content::kPoison;
    check(c);
  }
}

TEST(KernelsOnPanels, AreTheComposedFormulaInFloat) {
  const std::vector<std::pair<const char*, Normaliser>> normalisers{{"softmax", Softmax{}},
                                                                    {"sparsemax", Sparsemax{}},
                                                                    {"entmax", Entmax{1.5}},
                                                                    {"top-k", TopK{20}},
                                                                    {"sigmoid", Sigmoid{}}};
  for (const auto& [name, normaliser] : normalisers) {
    at::manual_seed(11);
    const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
      return at::randn({1, heads, length, width}, at::kFloat);
    };
    Call given{rows(2, 130, 64), rows(1, 200, 64), rows(1, 200, 48), {}, {}, 0, 7};
    given.choices = {Dot{}, normaliser, Causal{}};
    const Call call = canonical(given);
    ASSERT_TRUE(cuda::forward_program(call).on_panels) << name;
    Call wide = call;
    for (at::Tensor* x : {&wide.query, &wide.key, &wide.value}) *x = x->to(at::kDouble);
    const at::NoGradGuard guard;
    const auto truth = composed::attend(wide);
    const cuda::Places places{at::full({1, 2, 130, 48}, -7.5f),
                              {},
                              at::full({1, 2, 130, 4}, -7.5f),
                              at::full({}, 5, at::kLong)};
    cuda::EmulatedDevice device;
    cuda::forward(device, call, places);
    const auto near = [&](const at::Tensor& x, const at::Tensor& y) {
      return at::allclose(x.to(at::kDouble), y, 1e-4, 1e-4);
    };
    EXPECT_TRUE(near(places.output, truth.output)) << name;
    const at::Tensor d_output = at::randn_like(places.output);
    const std::vector<int64_t> wanted(3, 1);
    const auto got =
        cuda::backward(device, call, d_output, {}, places.output, places.statistics, wanted);
    const auto expected = composed::backward(wide, d_output.to(at::kDouble), {}, wanted);
    for (size_t n = 0; n < 3; ++n) EXPECT_TRUE(near(got[n], expected[n])) << name << " " << n;
  }
}

TEST(Kernels, AreTheReferenceForTheWholeProduct) {
  if (!std::getenv("FOVEA_SLOW")) GTEST_SKIP() << "an hour; FOVEA_SLOW=1 runs it";
  for (const auto& score : cases::scores()) {
    for (const auto& normaliser : cases::normalisers()) {
      for (const auto& structure : cases::structures()) {
        Case c = with(score.name, normaliser.name, structure.name);
        c.content = cases::Content::kPoison;
        check(c);
      }
    }
  }
}

// Float32 alone takes exponentials once for each number: small ones, some whose product has no
// number, and some that have none themselves. Values wider than a chunk.
TEST(Kernels, AreTheComposedFormulaOfAdditiveScoresInFloat) {
  for (const double size : {1.0, 8.0, 60.0}) {
    at::manual_seed(7);
    const auto rows = [&](int64_t length, int64_t width) {
      return at::randn({1, 2, length, width}, at::kFloat);
    };
    Call given{size * rows(37, 40), size * rows(70, 40), rows(70, 150), {}, {}, 0, 7};
    given.choices = {Additive{at::randn({2, 40}, at::kFloat)}, Softmax{}, Causal{}};
    const Call call = canonical(given);
    Call wide = call;
    for (at::Tensor* x : {&wide.query, &wide.key, &wide.value}) *x = x->to(at::kDouble);
    visit_arrays(wide.choices, [](const char*, at::Tensor& x) { x = x.to(at::kDouble); });
    const at::NoGradGuard guard;
    const auto truth = composed::attend(wide);
    const cuda::Places places{at::full({1, 2, 37, 150}, -7.5f),
                              {},
                              at::full({1, 2, 37, 4}, -7.5f),
                              at::full({}, 5, at::kLong)};
    cuda::EmulatedDevice device;
    cuda::forward(device, call, places);
    const auto near = [&](const at::Tensor& x, const at::Tensor& y) {
      return at::allclose(x.to(at::kDouble), y, 1e-4, 1e-4);
    };
    EXPECT_TRUE(near(places.output, truth.output)) << size;
    const at::Tensor d_output = at::randn_like(places.output);
    const std::vector<int64_t> wanted(4, 1);
    const auto got =
        cuda::backward(device, call, d_output, {}, places.output, places.statistics, wanted);
    const auto expected = composed::backward(wide, d_output.to(at::kDouble), {}, wanted);
    for (size_t n = 0; n < 4; ++n) EXPECT_TRUE(near(got[n], expected[n])) << size << " " << n;
  }
}

// Blocks share out the keys of a row: three of them here, where one tile has all rows. A block may
// see no key, and a row too.
TEST(Kernels, ShareOutTheKeysOfAdditiveScores) {
  const auto offsets = [](std::vector<int> x) { return at::tensor(x, at::kInt); };
  struct Case {
    const char* name;
    Structure structure;
    Normaliser normaliser;
    double dropout;
  };
  const std::vector<Case> cases{
      {"dense", Dense{}, Softmax{}, 0},
      {"dropout", Dense{}, Softmax{}, 0.3},
      {"window", Window{20, -1}, Softmax{at::randn({1}, at::kFloat)}, 0},
      {"far", Window{-400, 3}, Softmax{}, 0},
      {"sigmoid", Causal{}, Sigmoid{}, 0},
      {"uniform", Causal{}, Uniform{}, 0},
      {"packed", Ragged{offsets({0, 5, 5, 40}), offsets({0, 150, 151, 300})}, Softmax{}, 0}};
  for (const Case& c : cases) {
    at::manual_seed(3);
    const bool packed = find_structure<Ragged>(c.structure) != nullptr;
    const auto rows = [&](int64_t length, int64_t width) {
      const at::Tensor x = at::randn({1, 1, length, width}, at::kFloat);
      return packed ? x[0].transpose(0, 1).contiguous() : x;
    };
    Call given{rows(40, 12), rows(300, 12), rows(300, 20), {}, {}, c.dropout, 7};
    given.choices = {Additive{at::randn({1, 12}, at::kFloat)}, c.normaliser, c.structure};
    const Call call = canonical(given);
    ASSERT_TRUE(cuda::forward_program(call).is_parted) << c.name;
    const at::NoGradGuard guard;
    const auto expected = composed::attend(call);
    cuda::Places places{at::full_like(expected.output, -7.5f), {}, {}, at::full({}, 5, at::kLong)};
    auto sizes = call.query.sizes().vec();
    sizes.back() = 4;
    places.statistics = at::full(sizes, -7.5f);
    cuda::EmulatedDevice device;
    cuda::forward(device, call, places);
    EXPECT_TRUE(at::allclose(places.output, expected.output, 1e-4, 1e-5)) << c.name;
    EXPECT_TRUE(at::equal(places.empty_rows, expected.empty_rows)) << c.name;
  }
}

// ---- with NVRTC, which needs no device ----

TEST(Kernels, AreCompiledForTheDevicesInUse) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  const std::array<const char*, 2> architectures{"sm_80", "sm_90"};
  for (size_t n = 0; n < 7; ++n) {
    Case c = step(5 * n);
    if (n == 6) c = with("kernel_gaussian", "kernel_ratio", "dense");  // on points
    if (n % 2 || n == 6) c.dtype = DType::kFloat32;
    auto built = cases::build(c);
    try {
      engine::check_meaning(built.problem);
    } catch (const Unsupported&) {
      continue;
    }
    const Call call = canonical(call_of(built.problem));
    for (const auto& program :
         {cuda::forward_program(call), cuda::backward_program(call, {1, 1, 1})}) {
      const auto compiled = cuda::compile(program.text, architectures[n / 2 % 2]);
      EXPECT_FALSE(compiled.binary.empty()) << program.name << "\n" << compiled.log;
    }
  }
}

TEST(Kernels, SayWhatDoesNotCompile) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  const auto compiled = cuda::compile("no program", "sm_90");
  EXPECT_TRUE(compiled.binary.empty());
  EXPECT_NE(compiled.log.find("error"), std::string::npos) << compiled.log;
}

}  // namespace
}  // namespace fovea
