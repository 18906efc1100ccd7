// The device texts, compiled for the host, against the reference: forward and backward, through the
// same host code that launches them on a CUDA device, with NaN wherever no query looks.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "engine/call/meaning.h"
#include "engine/reference/reference.h"
#include "tests/torch/against_reference.h"
#include "tests/torch/emulated_device.h"
#include "tests/torch/tensor_cores.h"
#include "torch/array_memo.h"
#include "torch/composed/composed.h"
#include "torch/cuda/runtime/cache.h"
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

// ---- tensor cores, whose words the host takes for them ----

TEST(KernelsOnTensorCores, AgreeWithTheComposedFormula) {
  at::manual_seed(3);
  for (const auto type : {at::kBFloat16, at::kHalf}) {
    const auto options = at::TensorOptions(type);
    const double bound = type == at::kHalf ? 0.01 : 0.06;
    const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
      return at::randn({2, heads, length, width}, options);
    };
    Call call{rows(4, 133, 32), rows(2, 101, 32), rows(2, 101, 16), {}, {}, 0, 7};
    call.choices = {Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f, 0.3f, 0.4f})),
                    Softmax{at::tensor({0.5f})}, Causal{} & Window{40, -1}};
    call.dropout_p = 0.25;
    check_tensor_cores(call, bound);
    // What padding holds is not seen, and a row may see nothing.
    call.dropout_p = 0;
    call.choices = {Dot{}, Softmax{},
                    Documents{at::arange(133).div(50, "floor").to(at::kInt),
                              at::arange(101).div(40, "floor").to(at::kInt)}};
    call.key_lengths = at::tensor({97, 0}, at::kInt);
    call.key.slice(2, 97) = NAN;
    call.value.slice(2, 97) = INFINITY;
    check_tensor_cores(call, bound);
  }
}

// Scores that read arrays; a scale below zero and of zero; structures that are no bands.
TEST(KernelsOnTensorCores, AgreeWithTheComposedFormulaForTheirOtherStages) {
  at::manual_seed(6);
  const auto options = at::TensorOptions(at::kBFloat16);
  const auto rows = [&](int64_t heads, int64_t length) {
    return at::randn({1, heads, length, 32}, options);
  };
  Call call{rows(2, 133), rows(1, 140), rows(1, 140), {}, {}, 0, 7};
  call.choices = {Score(Dot{}).bias(at::randn({2, 133, 140})), Softmax{}, Prefix{70}};
  check_tensor_cores(call, 0.06, /*of_arrays=*/0);
  call.choices = {Score(Dot{}).relative(at::randn({7, 32}), {}, 3), Softmax{}, Window{50, 20}};
  check_tensor_cores(call, 0.06);
  call.choices = {Dot{0.3}, Softmax{}, Blocks{at::rand({5, 5}) < 0.6, 32}};
  check_tensor_cores(call, 0.06);
  call.choices = {Dot{-0.3}, Softmax{}, Causal{}};
  check_tensor_cores(call, 0.06);
  call.choices = {Dot{0.0}, Softmax{}, Window{5, 5}};
  check_tensor_cores(call, 0.06);
}

// Rows of 128 columns lie in panels, as Hopper's products want them.
TEST(KernelsOnTensorCores, AgreeWithTheComposedFormulaInPanels) {
  at::manual_seed(8);
  const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
    return at::randn({1, heads, length, width}, at::TensorOptions(at::kBFloat16));
  };
  Call call{rows(2, 133, 128), rows(1, 140, 128), rows(1, 140, 128), {}, {}, 0, 7};
  call.choices = {Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f})), Softmax{},
                  Causal{} & Window{90, -1}};
  call.dropout_p = 0.25;
  check_tensor_cores(call, 0.06);
  call.dropout_p = 0;
  call.choices = {Dot{}, Softmax{}, Prefix{70}};
  call.key_lengths = at::tensor({130}, at::kInt);
  call.key.slice(2, 130) = NAN;
  call.value.slice(2, 130) = INFINITY;
  check_tensor_cores(call, 0.06);
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

// Few queries: the keys in parts, and one row's parts together again.
TEST(KernelsOnTensorCores, AgreeWithTheComposedFormulaForFewQueries) {
  at::manual_seed(4);
  const auto options = at::TensorOptions(at::kBFloat16);
  const auto rows = [&](int64_t heads, int64_t length, int64_t width) {
    return at::randn({2, heads, length, width}, options);
  };
  Call call{rows(4, 3, 32), rows(2, 700, 32), rows(2, 700, 48), {}, {}, 0, 7};
  call.query_offset = at::tensor({690, 300}, at::kInt);
  call.choices = {Score(Dot{}).soft_cap(4).alibi(at::tensor({0.1f, 0.2f, 0.3f, 0.4f})),
                  Softmax{at::tensor({0.5f})}, Causal{} & Window{400, -1}};
  call.dropout_p = 0.25;
  ASSERT_TRUE(cuda::forward_program(canonical(call)).decodes);
  check_tensor_cores(call, 0.06);
  // What padding holds is not seen, and a row may see nothing.
  call.dropout_p = 0;
  call.query_offset = at::Tensor();
  call.choices = {Dot{}, Softmax{}, Dense{}};
  call.key_lengths = at::tensor({97, 0}, at::kInt);
  call.key.slice(2, 97) = NAN;
  call.value.slice(2, 97) = INFINITY;
  check_tensor_cores(call, 0.06);
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

// ---- what is known of a graph's arrays ----

TEST(ArrayMemo, KnowsArraysUntilTheyChangeOrGo) {
  ArrayMemo<int> memo;
  at::Tensor x = at::arange(4), y = at::arange(3);
  EXPECT_FALSE(memo.find({x, y}, {1}));
  memo.keep({x, y}, {1}, 7);
  EXPECT_EQ(memo.find({x, y}, {1}), 7);
  EXPECT_EQ(memo.find({x.view({4}), y}, {1}), 7) << "another tensor of the same numbers in place";
  EXPECT_FALSE(memo.find({x, y}, {2}));
  EXPECT_FALSE(memo.find({y, x}, {1}));
  EXPECT_FALSE(memo.find({x.slice(0, 0, 3), y}, {1}));
  EXPECT_FALSE(memo.find({x.clone(), y}, {1}));
  x[2] = 5;
  EXPECT_FALSE(memo.find({x, y}, {1})) << "changed";
  memo.keep({x, y}, {1}, 8);
  x = at::Tensor();
  EXPECT_FALSE(memo.find({at::arange(4), y}, {1})) << "gone, perhaps with another in its place";
}

// ---- the cache on disk ----

TEST(KernelsCache, KeepsABinaryUnderItsWholeKey) {
  const auto folder =
      std::filesystem::temp_directory_path() / ("fovea-cache-test-" + std::to_string(getpid()));
  setenv("FOVEA_CACHE", folder.c_str(), 1);
  EXPECT_FALSE(cuda::cached("a key"));
  cuda::keep_cached("a key", std::string("a\0binary", 8));
  EXPECT_EQ(cuda::cached("a key"), std::string("a\0binary", 8));
  EXPECT_FALSE(cuda::cached("another key"));
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_EQ(entry.path().extension(), ".cubin") << "an unfinished file was left";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::fstream file(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('Y');
  }
  EXPECT_FALSE(cuda::cached("a key")) << "its last byte was changed";
  // A file that was cut short, or is another key's, is no file.
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    std::filesystem::resize_file(entry.path(), 3);
  EXPECT_FALSE(cuda::cached("a key"));
  // Where nothing can be written nothing is, and nothing is said.
  setenv("FOVEA_CACHE", "/proc/nowhere", 1);
  cuda::keep_cached("a key", "binary");
  EXPECT_FALSE(cuda::cached("a key"));
  unsetenv("FOVEA_CACHE");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace fovea
