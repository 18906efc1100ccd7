// The derivatives of attend_backward: reverse over reverse and forward over reverse are both
// attend_double_backward. Higher derivatives are recorded by libtorch, outside torch.func.
#include <ATen/ATen.h>
#include <ATen/functorch/DynamicLayer.h>
#include <torch/library.h>

#include "torch/autograd/node.h"
#include "torch/composed/composed.h"
#include "torch/layout.h"

namespace fovea::operators {
namespace {

struct AttendBackwardNode final : torch::autograd::Node {
  SavedCall call;
  SavedVariable d_output, d_lse;
  std::vector<int64_t> places;  // which gradient each result is, of query, key, value, arrays

  std::string name() const override { return "AttendDoubleBackward"; }
  void release_variables() override {
    const std::lock_guard lock(mutex_);
    call.release();
    d_output.reset_data();
    d_lse.reset_data();
  }

  variable_list apply(variable_list&& second) override {
    const std::lock_guard lock(mutex_);
    const size_t count = 5 + call.arrays.size();
    Tangents given;
    for (size_t n = 0; n < second.size(); ++n) {
      if (!second[n].defined()) continue;
      given.directions.push_back(second[n]);
      given.given.push_back(places[n]);
    }
    if (given.given.empty()) return variable_list(count);
    std::vector<int64_t> wanted;
    for (size_t n = 0; n < count; ++n) wanted.push_back(task_should_compute_output(n));
    variable_list result = attend_double_backward(
        given.directions, given.given, d_output.unpack(), optional(d_lse.unpack()),
        call.query.unpack(), call.key.unpack(), call.value.unpack(), call.unpacked_arrays(),
        call.choices, call.numbers, optional(call.key_lengths.unpack()), call.dropout_p,
        optional(call.seed.unpack()), wanted, optional(call.query_offset.unpack()));
    for (size_t n = 0; n < count; ++n) {
      if (!wanted[n]) result[n] = Tensor();
    }
    return result;
  }
};

// The gradients that were wanted, in one list, and which they are.
std::pair<variable_list, std::vector<int64_t>> only_wanted(const Gradients& gradients,
                                                           at::IntArrayRef wanted) {
  const auto& [d_query, d_key, d_value, d_arrays] = gradients;
  variable_list all{d_query, d_key, d_value}, kept;
  all.insert(all.end(), d_arrays.begin(), d_arrays.end());
  std::vector<int64_t> places;
  for (size_t n = 0; n < all.size(); ++n) {
    if (!wanted[n]) continue;
    kept.push_back(all[n]);
    places.push_back(static_cast<int64_t>(n));
  }
  return {std::move(kept), std::move(places)};
}

Gradients attend_backward_autograd(const Tensor& d_output, const OptionalTensor& d_lse,
                                   const Tensor& query, const Tensor& key, const Tensor& value,
                                   at::TensorList arrays, c10::string_view choices,
                                   c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                                   double dropout_p, const OptionalTensor& seed,
                                   const Tensor& output, const Tensor& statistics,
                                   at::IntArrayRef wanted, const OptionalTensor& query_offset) {
  Gradients gradients = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return attend_backward(d_output, d_lse, query, key, value, arrays, choices, numbers,
                           key_lengths, dropout_p, seed, output, statistics, wanted, query_offset);
  }();
  const auto [results, places] = only_wanted(gradients, wanted);
  const OptionalTensor lse_gradient = d_lse;
  if (torch::autograd::compute_requires_grad(d_output, lse_gradient, query, key, value, arrays)) {
    auto node = make_node<AttendBackwardNode>();
    node->set_next_edges(torch::autograd::collect_next_edges(d_output, d_lse.value_or(Tensor()),
                                                             query, key, value, arrays));
    node->call.save(query, key, value, arrays, choices, numbers, key_lengths, dropout_p, seed,
                    query_offset);
    node->d_output = SavedVariable(d_output, false);
    node->d_lse = SavedVariable(d_lse, false);
    node->places = places;
    torch::autograd::set_history(results, node);
  }

  // Forward mode: linear in d_output and d_lse, and along the operands the gradient of a gradient.
  const Tangents tangents = tangents_of(query, key, value, arrays);
  const Tensor moved_output = tangent_of(d_output),
               moved_lse = d_lse ? tangent_of(*d_lse) : Tensor();
  const bool moves = moved_output.defined() || moved_lse.defined();
  if (!moves && tangents.given.empty()) return gradients;
  const Tensor q = primal_of(query), k = primal_of(key), v = primal_of(value);
  const std::vector<Tensor> parameters = primals_of(arrays);
  std::vector<Tensor> sums(results.size());
  if (moves) {
    const auto linear = attend_backward(
        moved_output.defined() ? moved_output : at::zeros_like(d_output), optional(moved_lse), q, k,
        v, parameters, choices, numbers, key_lengths, dropout_p, seed, primal_of(output),
        primal_of(statistics), wanted, query_offset);
    sums = only_wanted(linear, wanted).first;
  }
  if (!tangents.given.empty()) {
    std::vector<int64_t> asked(5 + arrays.size(), 0);
    for (int64_t place : places) asked[2 + place] = 1;
    const auto along = attend_double_backward(
        tangents.directions, tangents.given, primal_of(d_output),
        d_lse ? OptionalTensor(primal_of(*d_lse)) : std::nullopt, q, k, v, parameters, choices,
        numbers, key_lengths, dropout_p, seed, asked, query_offset);
    for (size_t n = 0; n < sums.size(); ++n) {
      const Tensor& part = along[2 + places[n]];
      sums[n] = sums[n].defined() ? sums[n] + part : part;
    }
  }
  for (size_t n = 0; n < sums.size(); ++n)
    results[n]._set_fw_grad(sums[n], /*level=*/0, /*is_inplace_op=*/false);
  return gradients;
}

// ---- the gradient of a gradient ----

std::vector<Tensor> double_backward(at::TensorList directions, at::IntArrayRef given,
                                    const Tensor& d_output, const OptionalTensor& d_lse,
                                    const Tensor& query, const Tensor& key, const Tensor& value,
                                    at::TensorList arrays, c10::string_view choices,
                                    c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                                    double dropout_p, const OptionalTensor& seed,
                                    at::IntArrayRef wanted, const OptionalTensor& query_offset) {
  const Call call = call_of(query, key, value, choices, arrays, numbers, key_lengths, dropout_p,
                            seed, query_offset);
  std::vector<Tensor> second(3 + arrays.size());
  for (size_t n = 0; n < given.size(); ++n) second[given[n]] = directions[n];
  auto gradients = composed::double_backward(call, d_output, d_lse.value_or(Tensor()), second);
  std::vector<Tensor> arguments{d_output, d_lse.value_or(d_output), query, key, value};
  arguments.insert(arguments.end(), arrays.begin(), arrays.end());
  for (size_t n = 0; n < arguments.size(); ++n) {
    const Layout layout = double_gradient_layout(arguments[n], wanted[n]);
    if (!wanted[n]) {
      gradients[n] = empty_of(layout, arguments[n]);
    } else if (!gradients[n].defined()) {
      gradients[n] = empty_of(layout, arguments[n]).zero_();
    } else {
      gradients[n] = laid_out(
          gradients[n].to(arguments[n].scalar_type()).reshape(arguments[n].sizes()), layout);
    }
  }
  return gradients;
}

std::vector<Tensor> double_backward_kernel(at::TensorList directions, at::IntArrayRef given,
                                           const Tensor& d_output, const OptionalTensor& d_lse,
                                           const Tensor& query, const Tensor& key,
                                           const Tensor& value, at::TensorList arrays,
                                           c10::string_view choices, c10::SymIntArrayRef numbers,
                                           const OptionalTensor& key_lengths, double dropout_p,
                                           const OptionalTensor& seed, at::IntArrayRef wanted,
                                           const OptionalTensor& query_offset) {
  const at::NoGradGuard guard;
  return double_backward(directions, given, d_output, d_lse, query, key, value, arrays, choices,
                         numbers, key_lengths, dropout_p, seed, wanted, query_offset);
}

// torch.func makes a node at every level, and seldom uses its result.
struct NoThirdDerivative final : torch::autograd::Node {
  std::string name() const override { return "AttendTripleBackward"; }
  variable_list apply(variable_list&&) override {
    throw Unsupported(
        "attend: a third derivative, or reverse mode over forward mode, inside torch.func; take "
        "torch.func.hessian (forward over reverse) for a second derivative, torch.autograd.grad "
        "with "
        "create_graph=True for a third");
  }
};

std::vector<Tensor> attend_double_backward_autograd(
    at::TensorList directions, at::IntArrayRef given, const Tensor& d_output,
    const OptionalTensor& d_lse, const Tensor& query, const Tensor& key, const Tensor& value,
    at::TensorList arrays, c10::string_view choices, c10::SymIntArrayRef numbers,
    const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
    at::IntArrayRef wanted, const OptionalTensor& query_offset) {
  using torch::autograd::isFwGradDefined;
  using torch::autograd::isFwGradDefinedTensorList;
  if (isFwGradDefined(d_output) || isFwGradDefined(d_lse) || isFwGradDefined(query) ||
      isFwGradDefined(key) || isFwGradDefined(value) || isFwGradDefinedTensorList(arrays) ||
      isFwGradDefinedTensorList(directions)) {
    throw Unsupported(
        "attend: forward mode over forward mode; take forward mode over reverse mode, as "
        "torch.func.hessian does");
  }
  const bool needs_gradient = torch::autograd::compute_requires_grad(directions, d_output, d_lse,
                                                                     query, key, value, arrays);
  const bool inside_func = at::functorch::maybeCurrentDynamicLayer().has_value();
  if (needs_gradient && !inside_func) {
    return double_backward(directions, given, d_output, d_lse, query, key, value, arrays, choices,
                           numbers, key_lengths, dropout_p, seed, wanted, query_offset);
  }
  std::vector<Tensor> gradients = [&] {
    const at::AutoDispatchBelowADInplaceOrView guard;
    return attend_double_backward(directions, given, d_output, d_lse, query, key, value, arrays,
                                  choices, numbers, key_lengths, dropout_p, seed, wanted,
                                  query_offset);
  }();
  if (needs_gradient) {
    auto node = make_node<NoThirdDerivative>();
    node->set_next_edges(torch::autograd::collect_next_edges(
        directions, d_output, d_lse.value_or(Tensor()), query, key, value, arrays));
    for (size_t n = 0; n < gradients.size(); ++n) {
      if (wanted[n]) torch::autograd::set_history(gradients[n], node);
    }
  }
  return gradients;
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, Autograd, m) {
  m.impl("attend_backward", attend_backward_autograd);
  m.impl("attend_double_backward", attend_double_backward_autograd);
}

TORCH_LIBRARY_IMPL(fovea, CPU, m) { m.impl("attend_double_backward", double_backward_kernel); }
TORCH_LIBRARY_IMPL(fovea, CUDA, m) { m.impl("attend_double_backward", double_backward_kernel); }

}  // namespace fovea::operators
