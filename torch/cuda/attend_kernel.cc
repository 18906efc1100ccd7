// The operators on CUDA: libtorch's fused attention where it can compute the call, kernels compiled
// at run time for nearly all other calls, the composed formula where those decline.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/composed/composed.h"
#include "torch/composed/pages.h"
#include "torch/cuda/cuda_device.h"
#include "torch/cuda/fused.h"
#include "torch/cuda/sdpa.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/layout.h"
#include "torch/lists.h"
#include "torch/operators.h"

namespace fovea::operators {

Tensor with_whole_loads(const Tensor& x) {
  constexpr int64_t kLoad = 16;
  const auto bytes = static_cast<int64_t>(x.element_size());
  const auto whole = [&](const c10::SymInt& elements) {
    return (elements * bytes % kLoad).sym_eq(0).guard_bool(__FILE__, __LINE__);
  };
  if (!whole(x.sym_size(-1))) return x;  // a copy's rows would start no better
  bool right = whole(x.sym_storage_offset());
  for (int64_t d = 0; d < x.dim() - 1; ++d) right = right && whole(x.sym_stride(d));
  return right ? x : x.clone(at::MemoryFormat::Contiguous);
}

Fused sdpa(const Call& call) {
  const auto scale = std::get<Dot>(call.choices.score.kind).scale;
  const bool causal = find_structure<Causal>(call.choices.structure) != nullptr;
  const bool grouped = call.query.sym_size(1) != call.key.sym_size(1);
  const auto integers = call.query.options().dtype(at::kLong).requires_grad(false);
  if (!call.key_lengths.defined()) {
    const Tensor output = at::scaled_dot_product_attention(
        with_whole_loads(call.query), with_whole_loads(call.key), with_whole_loads(call.value), {},
        0.0, causal, scale, grouped);
    return {laid_out(output, output_layout(call.query, call.value)), at::zeros({}, integers)};
  }
  // Keys and values past the end are set to zero, so that no number in them, not even a NaN, enters
  // a product. A row without keys sees one such zero: output 0, gradient 0. Nothing here waits
  // for the device.
  const int64_t queries = call.query.size(2), keys = call.key.size(2);
  const Tensor lengths = call.key_lengths.to(integers, /*non_blocking=*/true).view({-1, 1, 1, 1});
  const Tensor j = at::arange(keys, integers).view({1, 1, 1, -1});
  const Tensor real = (j < lengths).transpose(2, 3);  // [B, 1, S, 1]
  Tensor keep = j < lengths.clamp_min(1);
  if (causal) keep = keep & (j <= at::arange(queries, integers).view({1, 1, -1, 1}));
  keep = keep.expand({-1, -1, queries, -1});
  const Tensor none = lengths <= 0;
  const Tensor output = at::scaled_dot_product_attention(
      at::where(none, 0.0, call.query), at::where(real, call.key, 0.0),
      at::where(real, call.value, 0.0), keep, 0.0, /*is_causal=*/false, scale, grouped);
  return {laid_out(output, output_layout(call.query, call.value)),
          none.sum() * (call.query.size(1) * queries)};
}

namespace {

Outputs attend_cuda(const Tensor& query, const Tensor& key, const Tensor& value,
                    c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
                    const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
                    bool return_lse, bool strict, const OptionalTensor& query_offset,
                    bool check_finite) {
  Call call = call_of(query, key, value, choices, arrays, numbers, key_lengths, dropout_p, seed,
                      query_offset);
  call.check_finite = check_finite;
  check_call(call, return_lse);
  if (!reads_pages(call)) call = composed::out_of_pages(call);
  const Tensor no_lse = empty_of(lse_layout(query, false), query);
  const c10::DeviceGuard device(query.device());
  if (sdpa_declines(call, return_lse).empty()) {
    // In the layout of the arguments as given: the call's rows may be copies.
    auto [output, empty_rows] = sdpa(call);
    return {laid_out(output, output_layout(query, value)), no_lse, no_statistics(query),
            empty_rows};
  }
  const at::NoGradGuard guard;
  if (kernels_decline(call).empty()) {
    const Tensor lse = return_lse ? empty_of(lse_layout(query, true), query) : Tensor(),
                 statistics = empty_of(statistics_layout(query), query);
    const Tensor empty_rows = at::empty({}, query.options().dtype(at::kLong).requires_grad(false));
    const Tensor output = empty_of(output_layout(query, value), query);
    cuda::forward(cuda::device_of(query), call, {output, lse, statistics, empty_rows});
    return {output, return_lse ? lse : no_lse, statistics, empty_rows};
  }
  if (strict) refuse_fallback(call, return_lse);
  refuse_host_function(call, kernels_decline(call));
  auto [output, lse, empty_rows] = composed::attend(call);
  return {laid_out(output, output_layout(query, value)),
          return_lse ? laid_out(lse, lse_layout(query, return_lse)) : no_lse, no_statistics(query),
          empty_rows};
}

std::vector<Tensor> fused_gradients(const Call& call, const Tensor& d_output, const Tensor& d_lse,
                                    const Tensor& output, const Tensor& statistics,
                                    at::IntArrayRef wanted) {
  cuda::Device& device = cuda::device_of(call.query);
  if (!may_be_sdpas(call))
    return cuda::backward(device, call, d_output, d_lse, output, statistics, wanted);
  // Forward may have been libtorch's (inside torch.func), which saves nothing for us.
  const at::NoGradGuard guard;
  const cuda::Places again{
      empty_of(output_layout(call.query, call.value), call.query),
      {},
      empty_of(statistics_layout(call.query), call.query),
      at::empty({}, call.query.options().dtype(at::kLong).requires_grad(false))};
  cuda::forward(device, call, again);
  return cuda::backward(device, call, d_output, d_lse, again.output, again.statistics, wanted);
}

Gradients attend_backward_cuda(const Tensor& d_output, const OptionalTensor& d_lse,
                               const Tensor& query, const Tensor& key, const Tensor& value,
                               at::TensorList arrays, c10::string_view choices,
                               c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                               double dropout_p, const OptionalTensor& seed, const Tensor& output,
                               const Tensor& statistics, at::IntArrayRef wanted,
                               const OptionalTensor& query_offset) {
  const Call given = call_of(query, key, value, choices, arrays, numbers, key_lengths, dropout_p,
                             seed, query_offset);
  const Call call = composed::out_of_pages(given);
  const c10::DeviceGuard device(query.device());
  auto against = kernels_decline(call);
  if (against.empty()) against = gradient_kernels_decline(call, wanted);
  const bool fused = against.empty();
  if (!fused) refuse_host_function(call, against);
  auto gradients =
      fused ? fused_gradients(call, d_output, d_lse.value_or(Tensor()), output, statistics, wanted)
            : composed::backward(call, d_output, d_lse.value_or(Tensor()), wanted);
  composed::into_pages(given, gradients);
  const auto give = [&](size_t n, const Tensor& argument) {
    if (!wanted[n] || !gradients[n].defined())
      return empty_of(no_gradient_layout(argument), argument);
    return laid_out(gradients[n].to(argument.scalar_type()).reshape(argument.sizes()),
                    n < 3 ? operand_gradient_layout(argument) : array_gradient_layout(argument));
  };
  std::vector<Tensor> d_arrays;
  for (size_t n = 0; n < arrays.size(); ++n) d_arrays.push_back(give(3 + n, arrays[n]));
  return {give(0, query), give(1, key), give(2, value), d_arrays};
}

std::tuple<Tensor, Tensor> weights_cuda(
    const Tensor& query, const Tensor& key, c10::string_view choices, at::TensorList arrays,
    c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths, const OptionalTensor& seed,
    const OptionalTensor& rows, const OptionalTensor& heads, int64_t top_k, bool column_sums,
    const OptionalTensor& query_offset, bool check_finite) {
  Call call = weights_call(query, key, choices, arrays, numbers, key_lengths, seed, query_offset);
  call.check_finite = check_finite;
  check_call(call);
  auto [weights, indices] =
      composed::weights(call, selection_of(call, rows, heads, top_k, column_sums));
  if (!indices.defined()) indices = at::empty({0}, query.options().dtype(at::kInt));
  return {weights, indices};
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, CUDA, m) {
  m.impl("weights", with_lists<weights_cuda>());
  m.impl("attend", with_lists<attend_cuda>());
  m.impl("attend_backward", attend_backward_cuda);
}

}  // namespace fovea::operators
