#include "nn/light/convolve.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "engine/layers/convolution.h"
#include "fovea/error.h"

namespace fovea::nn {

// [B, L, width, kernel] windows are a view; only libtorch's product copies them.
at::Tensor weighted_windows(const at::Tensor& padded, const at::Tensor& weight) {
  const int64_t heads = weight.size(2), kernel = weight.size(3);
  const at::Tensor windows =
      padded.unfold(1, kernel, 1).unflatten(2, {heads, padded.size(2) / heads});
  return at::matmul(windows, weight.unsqueeze(-1)).squeeze(-1).flatten(2);
}

at::Tensor banded_products(const at::Tensor& x, const at::Tensor& weight, int64_t left) {
  constexpr int64_t kPositions = 32;  // of a block, at most
  const int64_t length = x.size(1), heads = weight.size(2), kernel = weight.size(3);
  const int64_t blocks = std::max<int64_t>(1, (length + kPositions - 1) / kPositions),
                block = std::max<int64_t>(1, (length + blocks - 1) / blocks),
                missing = blocks * block - length, rows = block + kernel - 1;
  // Kernels with `block` zeros behind each, read in rows that are one number shorter: every row
  // begins one place further to the right. [B, heads, blocks, block, rows]
  const at::Tensor band = at::constant_pad_nd(weight.transpose(1, 2), {0, block, 0, missing})
                              .unflatten(2, {blocks, block})
                              .flatten(3)
                              .narrow(3, 0, block * rows)
                              .unflatten(3, {block, rows});
  const at::Tensor seen = at::constant_pad_nd(x, {0, 0, left, kernel - 1 - left + missing})
                              .unfold(1, rows, block)
                              .unflatten(2, {heads, x.size(2) / heads})
                              .permute({0, 2, 1, 4, 3});  // [B, heads, blocks, rows, columns]
  return at::matmul(band, seen)
      .permute({0, 2, 3, 1, 4})
      .flatten(3)
      .flatten(1, 2)
      .narrow(1, 0, length);
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

engine::Convolution convolution_of(const at::Tensor& x, const at::Tensor& weight, int64_t left) {
  return {.length = static_cast<size_t>(x.size(1)),
          .width = static_cast<size_t>(x.size(2)),
          .heads = static_cast<size_t>(weight.size(2)),
          .kernel = static_cast<size_t>(weight.size(3)),
          .left = static_cast<size_t>(left)};
}

// run(type, first, last) for blocks of positions.
template <class Run>
void over_positions(const at::Tensor& x, const Run& run) {
  constexpr int64_t kPositions = 64;
  at::parallel_for(0, x.size(0) * x.size(1), kPositions, [&](int64_t from, int64_t to) {
    const auto first = static_cast<size_t>(from), last = static_cast<size_t>(to);
    x.scalar_type() == at::kDouble ? run(double{}, first, last) : run(float{}, first, last);
  });
}

template <class T>
T* values_of(const at::Tensor& x) {
  return x.mutable_data_ptr<T>();
}

struct Convolve : torch::autograd::Function<Convolve> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            int64_t left) {
    const engine::Convolution what = convolution_of(x, weight, left);
    const at::Tensor out = at::empty_like(x);
    over_positions(x, [&]<class T>(T, size_t first, size_t last) {
      engine::convolution_kernels<T>().forward(what, first, last, values_of<T>(x),
                                               values_of<T>(weight), values_of<T>(out));
    });
    context->save_for_backward({x, weight});
    context->saved_data["left"] = left;
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list given) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1];
    const int64_t left = context->saved_data["left"].toInt();
    if (at::GradMode::is_enabled()) return differentiable_backward(x, weight, left, given[0]);
    const engine::Convolution what = convolution_of(x, weight, left);
    const at::Tensor d_out = given[0].contiguous();
    at::Tensor d_x, d_weight;
    if (context->needs_input_grad(0)) {
      d_x = at::empty_like(x);
      over_positions(x, [&]<class T>(T, size_t first, size_t last) {
        engine::convolution_kernels<T>().backward_x(what, first, last, values_of<T>(weight),
                                                    values_of<T>(d_out), values_of<T>(d_x));
      });
    }
    if (context->needs_input_grad(1)) {
      d_weight = at::empty_like(weight);
      over_positions(x, [&]<class T>(T, size_t first, size_t last) {
        engine::convolution_kernels<T>().backward_weight(
            what, first, last, values_of<T>(x), values_of<T>(d_out), values_of<T>(d_weight));
      });
    }
    return {d_x, d_weight, {}};
  }

 private:
  static variable_list differentiable_backward(const at::Tensor& x, const at::Tensor& weight,
                                               int64_t left, const at::Tensor& d_out) {
    variable_list wanted;
    for (const at::Tensor* t : {&x, &weight})
      if (t->requires_grad()) wanted.push_back(*t);
    const variable_list found =
        torch::autograd::grad({banded_products(x, weight, left)}, wanted, {d_out},
                              /*retain_graph=*/true, /*create_graph=*/true);
    size_t next = 0;
    at::Tensor d_x, d_weight;
    if (x.requires_grad()) d_x = found[next++];
    if (weight.requires_grad()) d_weight = found[next];
    return {d_x, d_weight, {}};
  }
};

}  // namespace

at::Tensor convolve(const at::Tensor& x, const at::Tensor& weight, int64_t left) {
  if (x.dim() != 3 || weight.dim() != 4 || weight.size(0) != x.size(0) ||
      weight.size(1) != x.size(1) || weight.size(2) <= 0 || x.size(2) % weight.size(2) != 0)
    throw InvalidArgument("weight: shape " + c10::str(weight.sizes()) +
                          ", expected [B, L, heads, kernel] for x of shape " + c10::str(x.sizes()) +
                          " and heads that divide its width");
  if (left < 0 || left >= weight.size(3))
    throw InvalidArgument("left: " + std::to_string(left) + ", expected 0 to " +
                          std::to_string(weight.size(3) - 1) + ", below the kernel's width");
  const at::ScalarType type = x.scalar_type();
  if (x.device().is_cpu() && weight.device().is_cpu() && weight.scalar_type() == type &&
      (type == at::kFloat || type == at::kDouble))
    return Convolve::apply(x.contiguous(), weight.contiguous(), left);
  return banded_products(x, weight, left);
}

}  // namespace fovea::nn
