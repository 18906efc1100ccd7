// A user's own score or mask, given as C++ expressions: compiled into the kernels, and the same as the
// function of the host.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>
#include <memory>

#include "fovea/elementwise.h"
#include "tests/torch/emulated_device.h"
#include "tests/torch/tensor_cores.h"
#include "torch/composed/composed.h"
#include "torch/cuda/fused.h"
#include "torch/cuda/runtime/nvrtc.h"
#include "torch/custom_table.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/spec.h"

namespace fovea {
namespace {

// Squares, and a cost of distance that differs from head to head.
auto squared() {
  return elementwise(
             [](auto e, const RowPosition& at) {
               using T = decltype(e);
               return e * e - T(0.05) * static_cast<T>((1 + at.head) * (at.query - at.key));
             },
             [](auto e, const RowPosition&) { return 2 * e; })
      .on_device(
          "score * score  // a comment ends with its line\n"
          "    - T(0.05) * ((1 + head) * (query - key))",
          "2 * score");
}

// No structure says this: every third key of the even items, and nothing for query 5.
auto every_third() {
  return elementwise(
             [](auto e, const RowPosition& at) {
               using T = decltype(e);
               const bool seen = at.query != 5 && (at.key + at.batch) % 3 == 0;
               return seen ? e : -std::numeric_limits<T>::infinity();
             },
             [](auto, const RowPosition&) { return 1; })
      .on_device("query != 5 && (key + batch) % 3 == 0 ? score : -infinity", "1");
}

// The device texts on the host against libtorch's operations with the function of the host, both in
// double: output, gradients, rows that see nothing.
void check(const Call& given, const std::string& what) {
  const Call call = canonical(given);
  ASSERT_EQ(cuda::kernels_decline(call), std::vector<std::string>()) << what;
  const std::vector<int64_t> wanted{1, 1, 1};
  ASSERT_EQ(cuda::gradients_decline(call, wanted), std::vector<std::string>()) << what;
  const at::NoGradGuard guard;
  const auto truth = composed::attend(call);
  auto statistics = call.query.sizes().vec();
  statistics.back() = 4;
  const cuda::Places places{at::full_like(truth.output, -7.5),
                            {},
                            at::full(statistics, -7.5, at::kDouble),
                            at::full({}, 5, at::kLong)};
  cuda::EmulatedDevice device;
  cuda::forward(device, call, places);
  EXPECT_TRUE(at::allclose(places.output, truth.output, 1e-10, 1e-10)) << what;
  EXPECT_TRUE(at::equal(places.empty_rows, truth.empty_rows)) << what;
  const at::Tensor d_output = at::randn_like(places.output);
  const auto got =
      cuda::backward(device, call, d_output, {}, places.output, places.statistics, wanted);
  const auto expected = composed::backward(call, d_output, {}, wanted);
  for (size_t n = 0; n < 3; ++n)
    EXPECT_TRUE(at::allclose(got[n], expected[n], 1e-9, 1e-9)) << what << ", gradient " << n;
}

Call rows(at::ScalarType type, int64_t width) {
  at::manual_seed(9);
  const auto random = [&](int64_t heads, int64_t length) {
    return at::randn({2, heads, length, width}, type);
  };
  return {random(4, 37), random(2, 70), random(2, 70), {}, {}, 0, 7};
}

TEST(KernelExpressions, AScoreIsTheFunctionOfTheHost) {
  const auto own = squared();
  Call call = rows(at::kDouble, 8);
  call.query_offset = at::tensor({30, 4}, at::kInt);
  call.choices = {Score(Dot{}).custom(own), Softmax{}, Causal{}};
  check(call, "softmax");
  call.choices = {Score(Dot{}).soft_cap(2).custom(own).custom(own), Sparsemax{}, Window{20, 20}};
  check(call, "sparsemax, twice");
}

TEST(KernelExpressions, AMaskHidesWhatItSays) {
  const auto own = every_third();
  Call call = rows(at::kDouble, 8);
  call.choices = {Score(Dot{}).custom(own), Softmax{}, Causal{}};
  check(call, "softmax");
  call.choices = {Score(Constant{}).custom(own), Uniform{}, Dense{}};
  check(call, "uniform");
}

TEST(KernelExpressions, BothAreServedOnTensorCores) {
  const auto score = squared();
  const auto mask = every_third();
  Call call = rows(at::kBFloat16, 32);
  call.choices = {Score(Dot{}).custom(score), Softmax{}, Causal{}};
  check_tensor_cores(call, 0.06);
  call.choices = {Score(Dot{}).custom(mask), Softmax{}, Window{30, 30}};
  check_tensor_cores(call, 0.06);
}

TEST(KernelExpressions, AGraphTakesThem) {
  const auto own = squared();
  const auto random = [](int64_t count) { return at::randn({count, 2, 8}, at::kDouble); };
  const auto integers = [](std::vector<int> x) { return at::tensor(x, at::kInt); };
  Call call{random(4), random(5), random(5), {}, {}, 0, 7};
  call.choices = {Score(Dot{}).custom(own), Softmax{},
                  Graph{integers({0, 2, 2, 5, 6}), integers({0, 3, 1, 2, 4, 4})}};
  check(call, "graph");
}

TEST(KernelExpressions, AreKeptWhenTheirOwnerIsGone) {
  using Own = decltype(squared());
  auto own = std::make_unique<Own>(squared());
  std::string text;
  {
    Choices choices{Score(Dot{}).custom(*own), Softmax{}, Dense{}};
    text = *flatten(choices).text;
  }
  own.reset();
  const Choices again = unflatten(text, {}, {});
  const auto& custom = std::get<Custom>(again.score.modifiers[0]);
  EXPECT_STREQ(custom.device_derivative, "2 * score");
  EXPECT_NE(std::string(custom.device_value).find("(1 + head)"), std::string::npos);
}

// The same function at the same place with other expressions is another choice.
TEST(KernelExpressions, TellFunctionsApart) {
  const auto own = squared();
  Custom one = own, other = own;
  other.device_value = "score";
  EXPECT_EQ(custom_handle(one), custom_handle(own));
  EXPECT_NE(custom_handle(one), custom_handle(other));
}

TEST(KernelExpressions, AFunctionWithoutThemIsDeclinedByName) {
  const auto own = squared();
  Call call = rows(at::kDouble, 8);
  Custom without = own;
  without.device_derivative = nullptr;
  call.choices = {Score(Dot{}).custom(without), Softmax{}, Dense{}};
  EXPECT_EQ(cuda::kernels_decline(canonical(call)), std::vector<std::string>());
  EXPECT_EQ(
      cuda::gradients_decline(canonical(call), {1, 1, 1}),
      std::vector<std::string>{"modifier custom, without its derivative's expression for devices"});
  without.device_value = nullptr;
  call.choices.score.modifiers = {without};
  EXPECT_EQ(cuda::kernels_decline(canonical(call)),
            std::vector<std::string>{
                "modifier custom, a function of the host without its expression for devices"});
}

// No other path on a device has them, so nothing else is tried, and the kernels' reason is not lost.
TEST(KernelExpressions, WhereKernelsDeclineThemTheCallIsRefusedWithTheReason) {
  const auto own = squared();
  const at::Tensor x = at::zeros({1, 2, 4, 8}, at::TensorOptions(at::kFloat).device(at::kMeta));
  Call call{x, x, x, {}, {}, 0, 7};
  call.choices = {Score(Dot{}).custom(own), Softmax{}, Dense{}};
  EXPECT_NE(explain(call, false).find("composed: refused, a custom function of the host"),
            std::string::npos)
      << explain(call, false);
  try {
    refuse_host_function(call, kernels_decline(call));
    ADD_FAILURE() << "not refused";
  } catch (const Unsupported& error) {
    EXPECT_NE(std::string(error.what())
                  .find("on meta, and no kernel takes its expressions\n"
                        "  kernels: tensors on meta"),
              std::string::npos)
        << error.what();
  }
  call.choices.score.modifiers.clear();
  refuse_host_function(call, {"any"});
  EXPECT_NE(explain(call, false).find("composed: taken"), std::string::npos);
}

TEST(KernelExpressions, AMistakeInOneIsShown) {
  if (!cuda::nvrtc_missing().empty()) GTEST_SKIP() << cuda::nvrtc_missing();
  const auto wrong = elementwise([](auto e, const RowPosition&) { return e; },
                                 [](auto, const RowPosition&) { return 1; })
                         .on_device("score + slopes[head]", "1");
  Call call = rows(at::kFloat, 8);
  call.choices = {Score(Dot{}).custom(wrong), Softmax{}, Dense{}};
  const auto program = cuda::forward_program(canonical(call));
  EXPECT_NE(program.name.find("dot+custom"), std::string::npos) << program.name;
  const auto compiled = cuda::compile(program.text, "sm_80");
  EXPECT_TRUE(compiled.binary.empty());
  EXPECT_NE(compiled.log.find("\"slopes\" is undefined"), std::string::npos) << compiled.log;
}

}  // namespace
}  // namespace fovea
