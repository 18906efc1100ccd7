// The CUDA kernels, without CUDA code: libtorch's fused attention where it serves, the composed
// formula elsewhere.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/composed/composed.h"
#include "torch/cuda/sdpa.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/operators.h"

namespace fovea::operators {

Tensor sdpa(const Call& call) {
  const auto scale = std::get<Dot>(call.choices.score.kind).scale;
  return at::scaled_dot_product_attention(
      call.query, call.key, call.value, /*attn_mask=*/{}, /*dropout_p=*/0.0,
      find_structure<Causal>(call.choices.structure) != nullptr, scale,
      /*enable_gqa=*/call.query.size(1) != call.key.size(1));
}

namespace {

Outputs attend_cuda(const Tensor& query, const Tensor& key, const Tensor& value,
                    c10::string_view choices, at::TensorList arrays,
                    const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
                    bool return_lse, bool strict) {
  const Call call = call_of(query, key, value, choices, arrays, key_lengths, dropout_p, seed);
  check_call(call, return_lse);
  const Tensor none = nothing(query).to(arithmetic_type(query));
  if (sdpa_declines(call, return_lse).empty()) {
    return {sdpa(call).contiguous(), none, none.clone(),
            at::zeros({}, query.options().dtype(at::kLong))};
  }
  if (strict) refuse_fallback(call, return_lse);
  const at::NoGradGuard guard;
  auto [output, lse, empty_rows] = composed::attend(call);
  return {output.contiguous(), return_lse ? lse.contiguous() : none, none.clone(), empty_rows};
}

Gradients attend_backward_cuda(const Tensor& d_output, const OptionalTensor& d_lse,
                               const Tensor& query, const Tensor& key, const Tensor& value,
                               at::TensorList arrays, c10::string_view choices,
                               const OptionalTensor& key_lengths, double dropout_p,
                               const OptionalTensor& seed, const Tensor& /*output*/,
                               const Tensor& /*statistics*/, at::IntArrayRef wanted) {
  const Call call = call_of(query, key, value, choices, arrays, key_lengths, dropout_p, seed);
  const auto gradients = composed::backward(call, d_output, d_lse.value_or(Tensor()), wanted);
  const auto give = [&](size_t n, const Tensor& argument) {
    if (!wanted[n] || !gradients[n].defined()) return nothing(argument);
    return gradients[n].to(argument.scalar_type()).reshape(argument.sizes()).contiguous();
  };
  std::vector<Tensor> d_arrays;
  for (size_t n = 0; n < arrays.size(); ++n) d_arrays.push_back(give(3 + n, arrays[n]));
  return {give(0, query), give(1, key), give(2, value), d_arrays};
}

std::tuple<Tensor, Tensor> weights_cuda(const Tensor& query, const Tensor& key,
                                        c10::string_view choices, at::TensorList arrays,
                                        const OptionalTensor& key_lengths,
                                        const OptionalTensor& seed, const OptionalTensor& rows,
                                        const OptionalTensor& heads, int64_t top_k,
                                        bool column_sums) {
  const Call call = weights_call(query, key, choices, arrays, key_lengths, seed);
  check_call(call);
  auto [weights, indices] =
      composed::weights(call, selection_of(call, rows, heads, top_k, column_sums));
  return {weights, indices.defined() ? indices : at::empty({0}, query.options().dtype(at::kInt))};
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, CUDA, m) {
  m.impl("weights", weights_cuda);
  m.impl("attend", attend_cuda);
  m.impl("attend_backward", attend_backward_cuda);
}

}  // namespace fovea::operators
