#include "nn/sublayer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "engine/layers/sublayer.h"

namespace fovea::nn {
namespace {

using at::Tensor;
using engine::Dropout;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// Rows that share a sum over columns: fixed, so that the number of threads changes no bit.
constexpr int64_t kBlock = 64;

template <class T>
T* data(const Tensor& x) {
  return x.mutable_data_ptr<T>();
}

// body(first, last) for blocks of rows.
template <class Body>
void over_rows(int64_t rows, const Body& body) {
  at::parallel_for(0, (rows + kBlock - 1) / kBlock, 1, [&](int64_t from, int64_t to) {
    for (int64_t b = from; b < to; ++b)
      body(static_cast<size_t>(b * kBlock), static_cast<size_t>(std::min(rows, (b + 1) * kBlock)));
  });
}

// body(first, last, sums) for blocks of rows; returns the blocks' sums [count, width] added up, in
// order.
template <class T, class Body>
Tensor sums_over_rows(const Tensor& x, int64_t count, const Body& body) {
  const int64_t blocks = (x.size(0) + kBlock - 1) / kBlock;
  const Tensor sums = at::zeros({blocks, count, x.size(1)}, x.options());
  over_rows(x.size(0), [&](size_t first, size_t last) {
    body(first, last, data<T>(sums) + static_cast<int64_t>(first) / kBlock * count * x.size(1));
  });
  return sums.sum(0);
}

template <class Run>
auto with_type(const Tensor& x, const Run& run) {
  return x.scalar_type() == at::kDouble ? run(double{}) : run(float{});
}

// What normalises: of the linear layer that is added, its bias; then the norm.
struct Norm {
  Tensor shift, weight, bias;
  double epsilon;
  Dropout dropout;

  template <class T>
  engine::AddNorm<T> kernel() const {
    return {.width = static_cast<size_t>(weight.size(0)),
            .shift = data<T>(shift),
            .weight = data<T>(weight),
            .bias = data<T>(bias),
            .epsilon = static_cast<T>(epsilon),
            .dropout = dropout};
  }
  // `y` becomes x + dropout(y + shift); returns its norm, and the rows' statistics.
  std::pair<Tensor, Tensor> forward(const Tensor& x, const Tensor& y) const {
    const Tensor out = at::empty_like(y), stats = at::empty({y.size(0), 2}, y.options());
    with_type(y, [&]<class T>(T) {
      over_rows(y.size(0), [&](size_t first, size_t last) {
        engine::sublayer_kernels<T>().add_norm(kernel<T>(), first, last, data<T>(x), data<T>(y),
                                               data<T>(out), data<T>(stats));
      });
    });
    return {out, stats};
  }
  struct Gradients {
    Tensor x, y, weight, bias, shift;
  };
  Gradients backward(const Tensor& sum, const Tensor& stats, const Tensor& d_out) const {
    const Tensor d_x = at::empty_like(sum), d_y = dropout ? at::empty_like(sum) : d_x;
    const Tensor columns = with_type(sum, [&]<class T>(T) {
      return sums_over_rows<T>(sum, 3, [&](size_t first, size_t last, T* sums) {
        engine::sublayer_kernels<T>().add_norm_backward(kernel<T>(), first, last, data<T>(sum),
                                                        data<T>(stats), data<T>(d_out),
                                                        data<T>(d_x), data<T>(d_y), sums);
      });
    });
    return {d_x, d_y, columns[0], columns[1], columns[2]};
  }
};

void rectify(const Tensor& y, const Tensor& shift, const Dropout& dropout) {
  with_type(y, [&]<class T>(T) {
    over_rows(y.size(0), [&](size_t first, size_t last) {
      engine::sublayer_kernels<T>().rectify(data<T>(shift), dropout, static_cast<size_t>(y.size(1)),
                                            first, last, data<T>(y));
    });
  });
}

// `d_y` becomes the gradient before the rectifier; returns its sum over rows.
Tensor rectify_backward(const Tensor& y, const Tensor& d_y, const Dropout& dropout) {
  return with_type(y, [&]<class T>(T) {
    return sums_over_rows<T>(y, 1, [&](size_t first, size_t last, T* sums) {
      engine::sublayer_kernels<T>().rectify_backward(dropout.scale, static_cast<size_t>(y.size(1)),
                                                     first, last, data<T>(y), data<T>(d_y), sums);
    });
  })[0];
}

// What dropout multiplies by, as a tensor: for the derivative of the derivative, which libtorch
// takes of the plain formula.
Tensor factors(const Dropout& dropout, int64_t rows, const Tensor& column) {
  const Tensor ones = at::ones({rows, column.size(0)}, column.options());
  rectify(ones, at::zeros_like(column), dropout);
  return ones;
}

Dropout draw(double p) {
  return engine::make_dropout(
      p, p > 0 ? static_cast<uint64_t>(at::randint(INT64_MAX, {}, at::kLong).item<int64_t>()) : 0);
}
// The second of two in one node.
Dropout second(Dropout dropout) {
  ++dropout.seed;
  return dropout;
}

void save(AutogradContext* context, variable_list tensors, const Norm& norm) {
  context->save_for_backward(std::move(tensors));
  context->saved_data["epsilon"] = norm.epsilon;
  context->saved_data["seed"] = static_cast<int64_t>(norm.dropout.seed);
  context->saved_data["threshold"] = static_cast<int64_t>(norm.dropout.threshold);
  context->saved_data["scale"] = norm.dropout.scale;
}
Norm saved_norm(AutogradContext* context, const Tensor& shift, const Tensor& weight,
                const Tensor& bias) {
  auto& saved = context->saved_data;
  return {shift,
          weight,
          bias,
          saved["epsilon"].toDouble(),
          {.seed = static_cast<uint64_t>(saved["seed"].toInt()),
           .threshold = static_cast<uint32_t>(saved["threshold"].toInt()),
           .scale = saved["scale"].toDouble()}};
}

// Gradients of `formula` of the inputs, which can be differentiated again.
template <class Formula>
variable_list differentiable(const variable_list& inputs, const Tensor& d_out,
                             const Formula& formula) {
  variable_list wanted;
  for (const Tensor& x : inputs) {
    if (x.requires_grad()) wanted.push_back(x);
  }
  const variable_list found = torch::autograd::grad({formula()}, wanted, {d_out},
                                                    /*retain_graph=*/true, /*create_graph=*/true);
  variable_list all;
  for (size_t i = 0, k = 0; i < inputs.size(); ++i)
    all.push_back(inputs[i].requires_grad() ? found[k++] : Tensor());
  return all;
}

struct ProjectAddNorm : Function<ProjectAddNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y,
                        const Tensor& weight, const Tensor& shift, const Tensor& gain,
                        const Tensor& bias, double epsilon, Dropout dropout) {
    const Norm norm{shift, gain, bias, epsilon, dropout};
    const Tensor sum = product(y, weight.t());
    auto [out, stats] = norm.forward(x, sum);
    save(context, {x, y, weight, shift, gain, bias, sum, stats}, norm);
    return out;
  }
  static variable_list backward(AutogradContext* context, variable_list given) {
    const variable_list s = context->get_saved_variables();
    const Tensor &x = s[0], &y = s[1], &weight = s[2];
    const Norm norm = saved_norm(context, s[3], s[4], s[5]);
    variable_list all;
    if (at::GradMode::is_enabled()) {
      all = differentiable({s.begin(), s.begin() + 6}, given[0], [&] {
        return at::layer_norm(
            x + at::linear(y, weight, s[3]) * factors(norm.dropout, x.size(0), s[3]), s[4].sizes(),
            s[4], s[5], norm.epsilon);
      });
    } else {
      const Norm::Gradients g = norm.backward(s[6], s[7], given[0].contiguous());
      const auto wanted = [&](size_t n) { return context->needs_input_grad(n); };
      all = {g.x,
             wanted(1) ? product(g.y, weight) : Tensor(),
             wanted(2) ? product(g.y.t(), y) : Tensor(),
             g.shift,
             g.weight,
             g.bias};
    }
    all.resize(8);
    return all;
  }
};

struct FeedForwardAddNorm : Function<FeedForwardAddNorm> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& in,
                        const Tensor& in_shift, const Tensor& weight, const Tensor& shift,
                        const Tensor& gain, const Tensor& bias, double epsilon, Dropout dropout) {
    const Norm norm{shift, gain, bias, epsilon, dropout};
    const Tensor hidden = product(x, in.t());
    rectify(hidden, in_shift, second(dropout));
    const Tensor sum = product(hidden, weight.t());
    auto [out, stats] = norm.forward(x, sum);
    save(context, {x, in, in_shift, weight, shift, gain, bias, hidden, sum, stats}, norm);
    return out;
  }
  static variable_list backward(AutogradContext* context, variable_list given) {
    const variable_list s = context->get_saved_variables();
    const Tensor &x = s[0], &in = s[1], &weight = s[3], &hidden = s[7];
    const Norm norm = saved_norm(context, s[4], s[5], s[6]);
    variable_list all;
    if (at::GradMode::is_enabled()) {
      all = differentiable({s.begin(), s.begin() + 7}, given[0], [&] {
        const Tensor h =
            at::relu(at::linear(x, in, s[2])) * factors(second(norm.dropout), x.size(0), s[2]);
        return at::layer_norm(
            x + at::linear(h, weight, s[4]) * factors(norm.dropout, x.size(0), s[4]), s[5].sizes(),
            s[5], s[6], norm.epsilon);
      });
    } else {
      const Norm::Gradients g = norm.backward(s[8], s[9], given[0].contiguous());
      const auto wanted = [&](size_t n) { return context->needs_input_grad(n); };
      const Tensor d_weight = wanted(3) ? product(g.y.t(), hidden) : Tensor(),
                   d_hidden = product(g.y, weight);
      const Tensor d_in_shift = rectify_backward(hidden, d_hidden, norm.dropout);
      const Tensor d_in = wanted(1) ? product(d_hidden.t(), x) : Tensor();
      const Tensor d_x = g.x.add_(product(d_hidden, in));
      all = {d_x, d_in, d_in_shift, d_weight, g.shift, g.weight, g.bias};
    }
    all.resize(9);
    return all;
  }
};

// All on the CPU and float or double, the linear layers with a bias and the norm with both its
// parameters.
bool can_fuse(std::initializer_list<Tensor> tensors) {
  const at::ScalarType type = tensors.begin()->scalar_type();
  return (type == at::kFloat || type == at::kDouble) &&
         std::all_of(tensors.begin(), tensors.end(), [&](const Tensor& t) {
           return t.defined() && t.device().is_cpu() && t.scalar_type() == type;
         });
}

Tensor as_rows(const Tensor& x) { return x.reshape({-1, x.size(-1)}).contiguous(); }

}  // namespace

Tensor project_add_norm(const Tensor& x, const Tensor& y, const Affine& linear,
                        torch::nn::LayerNorm& norm, double dropout) {
  const double epsilon = norm->options.eps();
  if (!can_fuse({x, y, linear.weight, linear.bias, norm->weight, norm->bias})) {
    return norm(x + at::dropout(linear(y), dropout, dropout > 0));
  }
  return ProjectAddNorm::apply(as_rows(x), as_rows(y), linear.weight, linear.bias, norm->weight,
                               norm->bias, epsilon, draw(dropout))
      .view(x.sizes());
}

Tensor feed_forward_add_norm(const Tensor& x, const Affine& in, const Affine& out,
                             torch::nn::LayerNorm& norm, double dropout) {
  const double epsilon = norm->options.eps();
  if (!can_fuse({x, in.weight, in.bias, out.weight, out.bias, norm->weight, norm->bias})) {
    const Tensor hidden = at::dropout(at::relu(in(x)), dropout, dropout > 0);
    return norm(x + at::dropout(out(hidden), dropout, dropout > 0));
  }
  return FeedForwardAddNorm::apply(as_rows(x), in.weight, in.bias, out.weight, out.bias,
                                   norm->weight, norm->bias, epsilon, draw(dropout))
      .view(x.sizes());
}

Tensor feed_forward_sublayer(const Tensor& x, const Affine& in, const Affine& out,
                             torch::nn::LayerNorm& norm, NormOrder order, double dropout) {
  if (order == NormOrder::kPost) return feed_forward_add_norm(x, in, out, norm, dropout);
  const Tensor hidden = at::dropout(at::relu(in(norm(x))), dropout, dropout > 0);
  return x + at::dropout(out(hidden), dropout, dropout > 0);
}

}  // namespace fovea::nn
