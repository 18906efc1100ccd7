// attend's derivatives. Reverse mode calls attend_backward, which is an operator too. Forward mode
// takes the gradient of attend_backward, which is linear in the gradient it is given.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/library.h>

#include "torch/autograd/node.h"
#include "torch/cuda/sdpa.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/layout.h"
#include "torch/lists.h"
#include "torch/spec.h"

namespace fovea::operators {
namespace {

struct AttendNode final : torch::autograd::Node {
  SavedCall call;
  SavedVariable output, statistics;  // without gradient: what depends on them is computed again

  std::string name() const override { return "AttendBackward"; }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    call.release();
    output.reset_data();
    statistics.reset_data();
  }

  variable_list apply(variable_list&& gradients) override {
    const std::lock_guard lock(mutex_);
    const size_t count = 3 + call.arrays.size();
    variable_list result(count);
    const Tensor d_lse = gradients.size() > 1 ? gradients[1] : Tensor();
    std::vector<int64_t> wanted;
    for (size_t n = 0; n < count; ++n) wanted.push_back(task_should_compute_output(n));
    if (!gradients[0].defined() && !d_lse.defined()) return result;
    const Tensor out = output.unpack();
    const auto [d_query, d_key, d_value, d_arrays] = attend_backward(
        gradients[0].defined() ? gradients[0] : at::zeros_like(out), optional(d_lse),
        call.query.unpack(), call.key.unpack(), call.value.unpack(), call.unpacked_arrays(),
        call.choices, call.numbers, optional(call.key_lengths.unpack()), call.dropout_p,
        optional(call.seed.unpack()), out, statistics.unpack(), wanted,
        optional(call.query_offset.unpack()));
    result[0] = d_query;
    result[1] = d_key;
    result[2] = d_value;
    std::copy(d_arrays.begin(), d_arrays.end(), result.begin() + 3);
    for (size_t n = 0; n < count; ++n) {
      if (!wanted[n]) result[n] = Tensor();
    }
    return result;
  }
};

// The tangents of output and lse.
void set_tangents(const Outputs& outputs, bool return_lse, const Tangents& tangents,
                  const Tensor& query, const Tensor& key, const Tensor& value,
                  at::TensorList arrays, c10::string_view choices, c10::SymIntArrayRef numbers,
                  const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
                  const OptionalTensor& query_offset) {
  const auto& [output, lse, statistics, empty_rows] = outputs;
  std::vector<int64_t> wanted(5 + arrays.size(), 0);
  wanted[0] = 1;
  wanted[1] = return_lse;
  const auto zeros = [](const Tensor& x) { return at::zeros_symint(x.sym_sizes(), x.options()); };
  const auto moved =
      attend_double_backward(tangents.directions, tangents.given, zeros(output),
                             return_lse ? OptionalTensor(zeros(lse)) : std::nullopt,
                             primal_of(query), primal_of(key), primal_of(value), primals_of(arrays),
                             choices, numbers, key_lengths, dropout_p, seed, wanted, query_offset);
  output._set_fw_grad(moved[0], /*level=*/0, /*is_inplace_op=*/false);
  if (return_lse) lse._set_fw_grad(moved[1], /*level=*/0, /*is_inplace_op=*/false);
}

// On CUDA libtorch's fused attention brings its own gradient; its kernels save what ours could not.
std::optional<Outputs> fused(const Tensor& query, const Tensor& key, const Tensor& value,
                             c10::string_view choices, at::TensorList arrays,
                             c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                             double dropout_p, bool return_lse, const OptionalTensor& query_offset,
                             bool check_finite) {
  // Inside torch.func a call's numbers cannot be checked here.
  if (!query.is_cuda() || at::functorch::maybeCurrentDynamicLayer()) return std::nullopt;
  const Call call{query,
                  key,
                  value,
                  unflatten({choices.data(), choices.size()}, arrays, numbers),
                  key_lengths.value_or(Tensor()),
                  dropout_p,
                  0,
                  query_offset.value_or(Tensor()),
                  check_finite};
  if (!sdpa_declines(call, return_lse).empty()) return std::nullopt;
  const bool traced = query.key_set().has(c10::DispatchKey::Python);  // no numbers to check
  if (!traced)
    check_call(call_of(query, key, value, choices, arrays, numbers, key_lengths, dropout_p, {},
                       query_offset),
               return_lse);
  auto [output, empty_rows] = sdpa(call);
  return Outputs{output, empty_of(lse_layout(query, false), query), no_statistics(query),
                 empty_rows};
}

Outputs attend_autograd(const Tensor& query, const Tensor& key, const Tensor& value,
                        c10::string_view choices, at::TensorList arrays,
                        c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                        double dropout_p, const OptionalTensor& seed, bool return_lse, bool strict,
                        const OptionalTensor& query_offset, bool check_finite) {
  const Tangents tangents = tangents_of(query, key, value, arrays);
  const bool needs_gradient = torch::autograd::compute_requires_grad(query, key, value, arrays);
  if (needs_gradient && tangents.given.empty()) {
    if (auto outputs = fused(query, key, value, choices, arrays, numbers, key_lengths, dropout_p,
                             return_lse, query_offset, check_finite))
      return *std::move(outputs);
  }
  Outputs outputs = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return attend(query, key, value, choices, arrays, numbers, key_lengths, dropout_p, seed,
                  return_lse, strict, query_offset, check_finite);
  }();
  const auto& [output, lse, statistics, empty_rows] = outputs;
  if (needs_gradient) {
    auto node = make_node<AttendNode>();
    node->set_next_edges(torch::autograd::collect_next_edges(query, key, value, arrays));
    node->call.save(query, key, value, arrays, choices, numbers, key_lengths, dropout_p, seed,
                    query_offset);
    // A view of its own, which has no node to refer back to.
    node->output = SavedVariable(output.detach(), false);
    node->statistics = SavedVariable(statistics, false);
    torch::autograd::set_history(output, node);
    if (return_lse) torch::autograd::set_history(lse, node);
  }
  if (!tangents.given.empty()) {
    set_tangents(outputs, return_lse, tangents, query, key, value, arrays, choices, numbers,
                 key_lengths, dropout_p, seed, query_offset);
  }
  return outputs;
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, Autograd, m) {
  m.impl("attend", with_lists<attend_autograd>());
  m.impl("weights", torch::CppFunction::makeFallthrough());
}

}  // namespace fovea::operators
