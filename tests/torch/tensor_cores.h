// The programs on tensor cores, whose words the host takes for them.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <vector>

#include "tests/torch/emulated_device.h"
#include "torch/composed/composed.h"
#include "torch/cuda/fused.h"
#include "torch/engine_call.h"

namespace fovea {

// Against the composed formula in double on the same 16-bit rows; a rounding of 16 bits is 2^-8.
// `of_arrays`: whether the gradients of the choices' arrays are wanted.
inline void check_tensor_cores(const Call& given, double bound, int64_t of_arrays = 1) {
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
                            truth.lse.defined() ? at::full(rows, -7.5, floats) : at::Tensor(),
                            at::full(statistics, -7.5, floats), at::full({}, 5, at::kLong)};
  cuda::EmulatedDevice device;
  cuda::forward(device, call, places);
  const auto near = [&](const at::Tensor& x, const at::Tensor& y, const char* what) {
    const at::Tensor wide_x = x.to(at::kDouble),
                     same = (wide_x == y) | (wide_x.isnan() & y.isnan());
    const at::Tensor error =
        at::where(same, 0.0, (wide_x - y).abs()) / (1 + at::where(same, 0.0, y.abs()));
    EXPECT_TRUE((error < bound).all().item<bool>()) << what << ": " << error.max().item<double>();
  };
  near(places.output, truth.output, "output");
  if (truth.lse.defined()) near(places.lse, truth.lse, "lse");
  EXPECT_EQ(places.empty_rows.item<int64_t>(), truth.empty_rows.item<int64_t>());
  const at::Tensor d_output = at::randn_like(places.output),
                   d_lse = truth.lse.defined() ? at::randn_like(places.lse) : at::Tensor();
  const auto got =
      cuda::backward(device, call, d_output, d_lse, places.output, places.statistics, wanted);
  const auto expected = composed::backward(wide, d_output.to(at::kDouble),
                                           d_lse.defined() ? d_lse.to(at::kDouble) : d_lse, wanted);
  for (size_t n = 0; n < expected.size(); ++n) {
    if (!expected[n].defined()) continue;
    ASSERT_TRUE(got[n].defined()) << n;
    near(got[n], expected[n], n == 0 ? "d_query" : n == 1 ? "d_key" : n == 2 ? "d_value" : "array");
  }
}

}  // namespace fovea
