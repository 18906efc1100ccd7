#include "fovea/nn/ntm.h"

#include <ATen/ATen.h>

#include <string>

#include "fovea/error.h"
#include "nn/addressing.h"

namespace fovea::nn {
namespace {

// Every row alike, and none zero.
constexpr double kFirstContent = 1e-6;

}  // namespace

NtmCellImpl::NtmCellImpl(const NtmOptions& options) : options_(options) {
  for (const auto& [name, value, least] : {std::tuple("input", options.input, 1),
                                           {"output", options.output, 1},
                                           {"rows", options.rows, 1},
                                           {"width", options.width, 1},
                                           {"read_heads", options.read_heads, 1},
                                           {"write_heads", options.write_heads, 1},
                                           {"shift", options.shift, 0},
                                           {"hidden", options.hidden, 1}})
    if (value < least)
      throw InvalidArgument(std::string(name) + ": " + std::to_string(value) +
                            ", expected at least " + std::to_string(least));
  reset();
}

void NtmCellImpl::reset() {
  const NtmOptions& o = options_;
  const int64_t read = o.read_heads * o.width,
                address = o.width + 3 + 2 * o.shift + 1;  // k, β, g, γ, s
  controller = register_module(
      "controller",
      Controller(ControllerOptions{
          .input = o.input, .reads = read, .hidden = o.hidden, .kind = o.controller}));
  heads = register_module("heads",
                          torch::nn::Linear(o.hidden, (o.read_heads + o.write_heads) * address +
                                                          2 * o.write_heads * o.width));
  output = register_module("output", torch::nn::Linear(o.hidden + read, o.output));
}

NtmState NtmCellImpl::start(int64_t batch) const {
  const NtmOptions& o = options_;
  const at::TensorOptions like = heads->weight.options();
  NtmState out{.memory = at::full({batch, o.rows, o.width}, kFirstContent, like),
               .weights = at::zeros({batch, o.read_heads + o.write_heads, o.rows}, like),
               .reads = at::zeros({batch, o.read_heads, o.width}, like),
               .controller = controller->start(batch)};
  out.weights.select(2, 0).fill_(1);
  return out;
}

// made [B, heads, k, β, g, γ, s]
at::Tensor NtmCellImpl::addresses(const at::Tensor& made, const NtmState& before) const {
  const int64_t width = options_.width;
  const at::Tensor key = made.narrow(2, 0, width).tanh(),
                   beta = at::softplus(made.narrow(2, width, 1)),
                   gate = made.narrow(2, width + 1, 1).sigmoid(),
                   gamma = at::softplus(made.narrow(2, width + 2, 1)) + 1,
                   shifts = made.narrow(2, width + 3, 2 * options_.shift + 1).softmax(2);
  const at::Tensor interpolated =
      at::lerp(before.weights, content_weights(key, beta, before.memory), gate);
  return sharpened(circular_shift(interpolated, shifts), gamma);
}

NtmStep NtmCellImpl::forward(const at::Tensor& x, const NtmState& before) {
  const NtmOptions& o = options_;
  const int64_t batch = before.memory.size(0), all = o.read_heads + o.write_heads;
  NtmStep out;
  out.state.controller = controller(x, before.reads, before.controller);
  const at::Tensor& h = out.state.controller.hidden;
  const at::Tensor made = heads(h);
  const int64_t writes = o.write_heads * o.width, addressing = made.size(1) - 2 * writes;
  out.state.weights = addresses(made.narrow(1, 0, addressing).reshape({batch, all, -1}), before);
  out.state.reads = read_rows(out.state.weights.narrow(1, 0, o.read_heads), before.memory);
  const auto vectors = [&](int64_t from) {
    return made.narrow(1, from, writes).reshape({batch, o.write_heads, o.width});
  };
  out.state.memory =
      written(before.memory, out.state.weights.narrow(1, o.read_heads, o.write_heads),
              vectors(addressing).sigmoid(), vectors(addressing + writes));
  out.output = output(at::cat({h, out.state.reads.flatten(1)}, 1));
  return out;
}

}  // namespace fovea::nn
