#include "nn/products/product.h"

#include <ATen/ATen.h>
#include <ATen/TensorSubclassLikeUtils.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>

namespace fovea::nn {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Multiply-adds from which oneDNN gains what its call costs: with fewer than 64 x 128 x 128 MKL was
// as fast (Zen 5, one thread).
constexpr int64_t kLeastWork = int64_t{1} << 21;
// oneDNN divides longer sums among threads, and then their number changes the last bits.
constexpr int64_t kLongestSum = int64_t{1} << 14;

std::optional<c10::OperatorHandle> find_one_dnn() {
#if defined(__x86_64__)
  if (!at::hasMKL() || !__builtin_cpu_is("amd") || !__builtin_cpu_supports("avx512f")) return {};
  const auto found = c10::Dispatcher::singleton().findSchema({"mkldnn::_linear_pointwise", ""});
  if (found && found->hasKernelForDispatchKey(c10::DispatchKey::CPU)) return found;
#endif
  return {};
}

const std::optional<c10::OperatorHandle>& one_dnn() {
  static const std::optional<c10::OperatorHandle> found = find_one_dnn();
  return found;
}

bool is_plain(const Tensor& x) {
  return x.device().is_cpu() && x.scalar_type() == at::kFloat && x.layout() == at::kStrided &&
         !at::isTensorSubclassLike(x);
}

bool has_tangent(const Tensor& x) { return x.defined() && x._fw_grad(0).defined(); }

// [m, k] by [n, k], transposed.
bool is_for_one_dnn(const Tensor& x, const Tensor& weight) {
  return one_dnn() && x.dim() == 2 && weight.dim() == 2 && x.size(1) == weight.size(1) &&
         x.size(1) <= kLongestSum && x.numel() * weight.size(0) >= kLeastWork && is_plain(x) &&
         is_plain(weight) && at::globalContext().userEnabledMkldnn();
}

Tensor by_one_dnn(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias) {
  const at::AutoDispatchBelowADInplaceOrView below;
  torch::jit::Stack stack = {x,
                             weight,
                             bias ? c10::IValue(*bias) : c10::IValue(),
                             std::string("none"),
                             c10::List<std::optional<at::Scalar>>(),
                             std::string()};
  one_dnn()->callBoxed(stack);
  return stack.back().toTensor();
}

struct Product : Function<Product> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& weight,
                        const std::optional<Tensor>& bias) {
    context->save_for_backward({x, weight});
    context->saved_data["bias"] = bias.has_value();
    return by_one_dnn(x, weight, bias);
  }
  static variable_list backward(AutogradContext* context, variable_list given) {
    const variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1], &d_out = given[0];
    // libtorch's products have derivatives of their own.
    const auto times = [](const Tensor& a, const Tensor& b) {
      return at::GradMode::is_enabled() ? at::mm(a, b) : product(a, b);
    };
    const auto wanted = [&](size_t n) { return context->needs_input_grad(n); };
    return {wanted(0) ? times(d_out, weight) : Tensor(), wanted(1) ? times(d_out.t(), x) : Tensor(),
            context->saved_data["bias"].toBool() && wanted(2) ? d_out.sum(0) : Tensor()};
  }
};

}  // namespace

bool has_one_dnn() { return one_dnn().has_value(); }

Tensor product(const Tensor& a, const Tensor& b) {
  return is_for_one_dnn(a, b.t()) ? by_one_dnn(a, b.t(), {}) : at::mm(a, b);
}

Tensor projected(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (x.dim() < 2 || weight.dim() != 2 || x.size(-1) != weight.size(1))
    return at::linear(x, weight, bias);  // says what is wrong
  const Tensor rows = x.dim() == 2 ? x : x.reshape({-1, x.size(-1)});
  if (!is_for_one_dnn(rows, weight) || (bias.defined() && !is_plain(bias)) ||
      at::autocast::is_autocast_enabled(at::kCPU) || has_tangent(x) || has_tangent(weight) ||
      has_tangent(bias))
    return at::linear(x, weight, bias);
  std::vector<int64_t> shape = x.sizes().vec();
  shape.back() = weight.size(0);
  return Product::apply(rows, weight, bias.defined() ? std::optional(bias) : std::nullopt)
      .view(shape);
}

}  // namespace fovea::nn
