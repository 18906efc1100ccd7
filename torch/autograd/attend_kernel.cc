// Gradients: attend's are attend_backward, an operator itself; attend_backward's go through the
// composed formula.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include "torch/composed/composed.h"
#include "torch/cuda/sdpa.h"
#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/operators.h"
#include "torch/spec.h"

namespace fovea::operators {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The tensors without gradient that every operator takes, and the numbers; saved as they came.
struct Rest {
  std::string choices;
  OptionalTensor key_lengths;
  double dropout_p;
  OptionalTensor seed;
};

void save(AutogradContext* context, variable_list tensors, const Rest& rest) {
  tensors.push_back(rest.key_lengths.value_or(Tensor()));
  tensors.push_back(rest.seed.value_or(Tensor()));
  context->save_for_backward(std::move(tensors));
  context->saved_data["choices"] = rest.choices;
  context->saved_data["dropout_p"] = rest.dropout_p;
}

OptionalTensor optional(const Tensor& tensor) {
  return tensor.defined() ? OptionalTensor(tensor) : std::nullopt;
}

// What `save` saved: the tensors, and the rest taken off their end.
std::pair<variable_list, Rest> saved(AutogradContext* context) {
  variable_list tensors = context->get_saved_variables();
  Rest rest{context->saved_data["choices"].toStringRef(), optional(tensors[tensors.size() - 2]),
            context->saved_data["dropout_p"].toDouble(), optional(tensors.back())};
  tensors.resize(tensors.size() - 2);
  return {std::move(tensors), std::move(rest)};
}

// Undefined for the gradients that were not wanted.
variable_list only_wanted(const Gradients& gradients, at::IntArrayRef wanted) {
  const auto& [d_query, d_key, d_value, d_arrays] = gradients;
  variable_list all{d_query, d_key, d_value};
  all.insert(all.end(), d_arrays.begin(), d_arrays.end());
  for (size_t n = 0; n < all.size(); ++n) {
    if (!wanted[n]) all[n] = Tensor();
  }
  return all;
}

struct AttendBackwardFunction : torch::autograd::Function<AttendBackwardFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& d_output,
                               const OptionalTensor& d_lse, const Tensor& query, const Tensor& key,
                               const Tensor& value, at::TensorList arrays, const Rest& rest,
                               const Tensor& output, const Tensor& statistics,
                               std::vector<int64_t> wanted) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [d_query, d_key, d_value, d_arrays] = operators::attend_backward(
        d_output, d_lse, query, key, value, arrays, rest.choices, rest.key_lengths, rest.dropout_p,
        rest.seed, output, statistics, wanted);
    variable_list inputs{d_output, d_lse.value_or(Tensor()), query, key, value};
    inputs.insert(inputs.end(), arrays.begin(), arrays.end());
    save(context, std::move(inputs), rest);
    context->saved_data["wanted"] = wanted;
    context->set_materialize_grads(false);
    variable_list results{d_query, d_key, d_value};
    results.insert(results.end(), d_arrays.begin(), d_arrays.end());
    variable_list constant;
    for (size_t n = 0; n < results.size(); ++n) {
      if (!wanted[n]) constant.push_back(results[n]);
    }
    context->mark_non_differentiable(constant);
    return results;
  }

  static variable_list backward(AutogradContext* context, variable_list second) {
    auto [tensors, rest] = saved(context);
    const auto wanted = context->saved_data["wanted"].toIntVector();
    const std::vector<Tensor> arrays(tensors.begin() + 5, tensors.end());
    const Call call = call_of(tensors[2], tensors[3], tensors[4], rest.choices, arrays,
                              rest.key_lengths, rest.dropout_p, rest.seed);
    for (size_t n = 0; n < second.size(); ++n) {
      if (!wanted[n]) second[n] = Tensor();
    }
    auto gradients = composed::double_backward(call, tensors[0], tensors[1], second);
    variable_list result(gradients.begin(), gradients.begin() + 2);  // of d_output and d_lse
    for (size_t n = 2; n < gradients.size(); ++n) {
      const Tensor& argument = tensors[n];
      result.push_back(gradients[n].defined()
                           ? gradients[n].to(argument.scalar_type()).reshape(argument.sizes())
                           : Tensor());
    }
    result.resize(result.size() + 4);  // rest, output, statistics, wanted
    return result;
  }
};

Gradients attend_backward_autograd(const Tensor& d_output, const OptionalTensor& d_lse,
                                   const Tensor& query, const Tensor& key, const Tensor& value,
                                   at::TensorList arrays, c10::string_view choices,
                                   const OptionalTensor& key_lengths, double dropout_p,
                                   const OptionalTensor& seed, const Tensor& output,
                                   const Tensor& statistics, at::IntArrayRef wanted) {
  auto all = AttendBackwardFunction::apply(
      d_output, d_lse, query, key, value, arrays,
      Rest{{choices.data(), choices.size()}, key_lengths, dropout_p, seed}, output, statistics,
      wanted.vec());
  return {all[0], all[1], all[2], variable_list(all.begin() + 3, all.end())};
}

struct AttendFunction : torch::autograd::Function<AttendFunction> {
  static variable_list forward(AutogradContext* context, const Tensor& query, const Tensor& key,
                               const Tensor& value, at::TensorList arrays, const Rest& rest,
                               bool return_lse, bool strict) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [output, lse, statistics, empty_rows] =
        operators::attend(query, key, value, rest.choices, arrays, rest.key_lengths, rest.dropout_p,
                          rest.seed, return_lse, strict);
    variable_list inputs{query, key, value, output, statistics};
    inputs.insert(inputs.end(), arrays.begin(), arrays.end());
    save(context, std::move(inputs), rest);
    context->set_materialize_grads(false);
    variable_list constant{statistics, empty_rows};
    if (!return_lse) constant.push_back(lse);
    context->mark_non_differentiable(constant);
    return {output, lse, statistics, empty_rows};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    auto [tensors, rest] = saved(context);
    const at::TensorList arrays = at::TensorList(tensors).slice(5);
    std::vector<int64_t> wanted;
    for (size_t n = 0; n < 3 + arrays.size(); ++n) {
      const bool has_gradient = n < 3 || arrays[n - 3].is_floating_point();
      wanted.push_back(has_gradient && context->needs_input_grad(n));
    }
    const Tensor d_output = gradients[0].defined() ? gradients[0] : at::zeros_like(tensors[3]);
    variable_list result = only_wanted(
        operators::attend_backward(d_output, optional(gradients[1]), tensors[0], tensors[1],
                                   tensors[2], arrays, rest.choices, rest.key_lengths,
                                   rest.dropout_p, rest.seed, tensors[3], tensors[4], wanted),
        wanted);
    result.resize(result.size() + 3);  // rest, return_lse, strict
    return result;
  }
};

Outputs attend_autograd(const Tensor& query, const Tensor& key, const Tensor& value,
                        c10::string_view choices, at::TensorList arrays,
                        const OptionalTensor& key_lengths, double dropout_p,
                        const OptionalTensor& seed, bool return_lse, bool strict) {
  if (query.is_cuda() && at::GradMode::is_enabled()) {
    // libtorch's fused attention brings its own gradient; its kernels save what ours could not.
    const Call call{query,
                    key,
                    value,
                    unflatten({choices.data(), choices.size()}, arrays),
                    key_lengths.value_or(Tensor()),
                    dropout_p,
                    0};
    if (sdpa_declines(call, return_lse).empty()) {
      const bool traced = query.key_set().has(c10::DispatchKey::Python);  // no numbers to check
      if (!traced)
        check_call(call_of(query, key, value, choices, arrays, key_lengths, dropout_p, {}),
                   return_lse);
      const Tensor none =
          at::empty({0}, query.options().dtype(arithmetic_type(query)).requires_grad(false));
      auto [output, empty_rows] = sdpa(call);
      return {output, none, none.clone(), empty_rows};
    }
  }
  auto all = AttendFunction::apply(
      query, key, value, arrays,
      Rest{{choices.data(), choices.size()}, key_lengths, dropout_p, seed}, return_lse, strict);
  return {all[0], all[1], all[2], all[3]};
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, Autograd, m) {
  m.impl("attend", attend_autograd);
  m.impl("attend_backward", attend_backward_autograd);
  m.impl("weights", torch::CppFunction::makeFallthrough());
}

}  // namespace fovea::operators
