#include "fovea/nn/dnc.h"

#include <ATen/ATen.h>

#include <string>

#include "fovea/error.h"
#include "nn/addressing.h"
#include "nn/positive.h"

namespace fovea::nn {
namespace {

// The interface vector [B, W R + 3 W + 5 R + 3], taken apart.
struct Interface {
  at::Tensor read_keys, read_strengths;    // [B, R, W], [B, R, 1]
  at::Tensor write_key, write_strength;    // [B, 1, W], [B, 1, 1]
  at::Tensor erase, add;                   // [B, 1, W]
  at::Tensor free_gates;                   // [B, R, 1]
  at::Tensor allocation_gate, write_gate;  // [B, 1]
  at::Tensor modes;                        // [B, R, 3]
};

Interface interface_of(const at::Tensor& made, const DncOptions& o) {
  const int64_t batch = made.size(0), heads = o.read_heads, width = o.width;
  const int64_t sizes[] = {heads * width, width, width, width, heads + 1, heads + 2, 3 * heads};
  const std::vector<at::Tensor> part = made.split_with_sizes(sizes, 1);
  const at::Tensor strengths = (at::softplus(part[4]) + 1).unsqueeze(2), gates = part[5].sigmoid();
  return {.read_keys = part[0].reshape({batch, heads, width}),
          .read_strengths = strengths.narrow(1, 0, heads),
          .write_key = part[1].unsqueeze(1),
          .write_strength = strengths.narrow(1, heads, 1),
          .erase = part[2].sigmoid().unsqueeze(1),
          .add = part[3].unsqueeze(1),
          .free_gates = gates.narrow(1, 0, heads).unsqueeze(2),
          .allocation_gate = gates.narrow(1, heads, 1),
          .write_gate = gates.narrow(1, heads + 1, 1),
          .modes = part[6].reshape({batch, heads, 3}).softmax(2)};
}

}  // namespace

DncCellImpl::DncCellImpl(const DncOptions& options) : options_(options) {
  for (const auto& [name, value] : {std::pair("input", options.input),
                                    {"output", options.output},
                                    {"rows", options.rows},
                                    {"width", options.width},
                                    {"read_heads", options.read_heads},
                                    {"hidden", options.hidden}})
    check_positive(name, value);
  reset();
}

void DncCellImpl::reset() {
  const DncOptions& o = options_;
  const int64_t read = o.read_heads * o.width;
  controller = register_module(
      "controller",
      Controller(ControllerOptions{
          .input = o.input, .reads = read, .hidden = o.hidden, .kind = o.controller}));
  interface = register_module(
      "interface", torch::nn::Linear(o.hidden, read + 3 * o.width + 5 * o.read_heads + 3));
  const int64_t seen = o.output_of == DncOutput::kReads ? read : o.hidden + read;
  output = register_module("output", torch::nn::Linear(seen, o.output));
}

DncState DncCellImpl::start(int64_t batch) const {
  const DncOptions& o = options_;
  const auto zeros = [&](at::IntArrayRef sizes) {
    return at::zeros(sizes, interface->weight.options());
  };
  return {.memory = zeros({batch, o.rows, o.width}),
          .unit_rows = zeros({batch, o.rows, o.width}),
          .usage = zeros({batch, o.rows}),
          .links = zeros({batch, o.rows, o.rows}),
          .precedence = zeros({batch, o.rows}),
          .write_weights = zeros({batch, o.rows}),
          .read_weights = zeros({batch, o.read_heads, o.rows}),
          .reads = zeros({batch, o.read_heads, o.width}),
          .controller = controller->start(batch)};
}

DncStep DncCellImpl::forward(const at::Tensor& x, const DncState& before) {
  DncStep out;
  DncState& now = out.state;
  now.controller = controller(x, before.reads, before.controller);
  const at::Tensor& h = now.controller.hidden;
  const Interface from = interface_of(interface(h), options_);
  out.modes = from.modes;

  now.usage =
      usage_after(before.usage,
                  options_.usage_gradient == UsageGradient::kStopped ? before.write_weights.detach()
                                                                     : before.write_weights,
                  from.free_gates, before.read_weights);
  now.write_weights =
      from.write_gate *
      at::lerp(content_of_units(from.write_key, from.write_strength, before.unit_rows).squeeze(1),
               allocation(now.usage), from.allocation_gate);
  now.memory = written(before.memory, now.write_weights.unsqueeze(1), from.erase, from.add);
  now.unit_rows = unit_rows(now.memory);
  now.links = links_after(before.links, before.precedence, now.write_weights);
  now.precedence = precedence_after(before.precedence, now.write_weights);

  // Row w of read weights: w L is (L' w)', backward; w L' forward.
  const auto mode = [&](int64_t which) { return from.modes.narrow(2, which, 1); };
  now.read_weights =
      at::addcmul(at::addcmul(mode(0) * before.read_weights.bmm(now.links), mode(1),
                              content_of_units(from.read_keys, from.read_strengths, now.unit_rows)),
                  mode(2), before.read_weights.bmm(now.links.transpose(1, 2)));
  now.reads = read_rows(now.read_weights, now.memory);
  const at::Tensor read = now.reads.flatten(1);
  out.output = output(options_.output_of == DncOutput::kReads ? read : at::cat({h, read}, 1));
  return out;
}

}  // namespace fovea::nn
