// The device texts for tensor cores, whose matrix instructions the host emulates, against the
// composed formula.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <vector>

#include "tests/torch/emulated_device.h"
#include "torch/composed/composed.h"
#include "torch/cuda/fused.h"
#include "torch/engine_call.h"

namespace fovea {
namespace {

// Against the composed formula in double on the same 16-bit rows; a rounding of 16 bits is 2^-8.
// `of_arrays`: whether the gradients of the choices' arrays are wanted.
void check_tensor_cores(const Call& given, double bound, int64_t of_arrays = 1) {
  const Call call = canonical(given);
  Call wide = call;
  std::vector<int64_t> wanted{1, 1, 1};
  visit_arrays(wide.choices, [&](const char*, at::Tensor&) { wanted.push_back(of_arrays); });
  ASSERT_TRUE(cuda::forward_program(call).on_tensor_cores);
  ASSERT_TRUE(cuda::backward_program(call, wanted).on_tensor_cores);
  for (at::Tensor* x : {&wide.query, &wide.key, &wide.value}) *x = x->to(at::kDouble);
  visit_arrays(wide.choices, [](const char*, at::Tensor& x) {
    if (x.is_floating_point()) x = x.to(at::kDouble);
  });
  const at::NoGradGuard guard;
  const auto truth = composed::attend(wide);
  const auto floats = call.query.options().dtype(at::kFloat);
  auto rows = call.query.sizes().vec();
  rows.pop_back();
  auto statistics = rows;
  statistics.push_back(4);
  const cuda::Places places{at::full(truth.output.sizes(), -7.5, call.query.options()),
                            at::full(rows, -7.5, floats), at::full(statistics, -7.5, floats),
                            at::full({}, 5, at::kLong)};
  cuda::EmulatedDevice device;
  cuda::forward(device, call, places);
  const auto near = [&](const at::Tensor& x, const at::Tensor& y, const char* what) {
    const at::Tensor wide_x = x.to(at::kDouble), same = wide_x == y;
    const at::Tensor error =
        at::where(same, 0.0, (wide_x - y).abs()) / (1 + at::where(same, 0.0, y.abs()));
    EXPECT_TRUE((error < bound).all().item<bool>()) << what << ": " << error.max().item<double>();
  };
  near(places.output, truth.output, "output");
  near(places.lse, truth.lse, "lse");
  EXPECT_EQ(places.empty_rows.item<int64_t>(), truth.empty_rows.item<int64_t>());
  const at::Tensor d_output = at::randn_like(places.output), d_lse = at::randn_like(places.lse);
  const auto got =
      cuda::backward(device, call, d_output, d_lse, places.output, places.statistics, wanted);
  const auto expected =
      composed::backward(wide, d_output.to(at::kDouble), d_lse.to(at::kDouble), wanted);
  for (size_t n = 0; n < expected.size(); ++n) {
    if (!expected[n].defined()) continue;
    ASSERT_TRUE(got[n].defined()) << n;
    near(got[n], expected[n], n == 0 ? "d_query" : n == 1 ? "d_key" : n == 2 ? "d_value" : "array");
  }
}

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

}  // namespace
}  // namespace fovea
