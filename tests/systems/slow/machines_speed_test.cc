// An NTM and a DNC over a sequence, each beside the same cell with its content and its reads written out in
// eager libtorch: forward and backward, in turns.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>

#include "fovea/nn/dnc.h"
#include "fovea/nn/ntm.h"
#include "tests/systems/slow/in_turns.h"

namespace fovea::nn {
namespace {

using fovea::test::medians;

constexpr int64_t kSteps = 18, kBatch = 32, kInput = 8, kOutput = 6, kRows = 16, kWidth = 12,
                  kHidden = 64;

torch::Tensor eager_content(const torch::Tensor& key, const torch::Tensor& strength,
                            const torch::Tensor& memory) {
  const auto unit = [](const torch::Tensor& x) {
    return x / (x.square().sum(-1, /*keepdim=*/true) + 1e-6).sqrt();
  };
  return (strength * unit(key).matmul(unit(memory).transpose(1, 2))).softmax(2);
}

NtmStep eager(NtmCell& cell, const torch::Tensor& x, const NtmState& before) {
  NtmStep out;
  out.state.controller = cell->controller(x, before.reads, before.controller);
  const torch::Tensor& h = out.state.controller.hidden;
  const torch::Tensor made = cell->heads(h);
  const int64_t addressing = made.size(1) - 2 * kWidth;
  const torch::Tensor of_heads = made.narrow(1, 0, addressing).reshape({kBatch, 2, -1});
  const auto number = [&](int64_t at, int64_t count) { return of_heads.narrow(2, at, count); };
  const torch::Tensor gate = number(kWidth + 1, 1).sigmoid(),
                      content = eager_content(number(0, kWidth).tanh(),
                                              torch::softplus(number(kWidth, 1)), before.memory),
                      shifts = number(kWidth + 3, 3).softmax(2),
                      mixed = gate * content + (1 - gate) * before.weights,
                      shifted = mixed.roll(-1, 2) * shifts.narrow(2, 0, 1) +
                                mixed * shifts.narrow(2, 1, 1) +
                                mixed.roll(1, 2) * shifts.narrow(2, 2, 1),
                      raised = (shifted + 1e-16).pow(torch::softplus(number(kWidth + 2, 1)) + 1);
  out.state.weights = raised / raised.sum(2, /*keepdim=*/true);
  out.state.reads = out.state.weights.narrow(1, 0, 1).matmul(before.memory);
  const torch::Tensor w = out.state.weights.select(1, 1).unsqueeze(2),
                      erase = made.narrow(1, addressing, kWidth).sigmoid().unsqueeze(1),
                      add = made.narrow(1, addressing + kWidth, kWidth).unsqueeze(1);
  out.state.memory = before.memory * (1 - w * erase) + w * add;
  out.output = cell->output(torch::cat({h, out.state.reads.flatten(1)}, 1));
  return out;
}

// The share of each row when rows are given out, the least used first.
torch::Tensor eager_allocation(const torch::Tensor& usage) {
  const auto [sorted, order] = (usage * (1 - 1e-6) + 1e-6).sort(/*stable=*/true, 1, false);
  const torch::Tensor before =
      torch::cat({torch::ones({kBatch, 1}), sorted.cumprod(1).narrow(1, 0, kRows - 1)}, 1);
  return torch::zeros_like(usage).scatter(1, order, (1 - sorted) * before);
}

// One read head.
DncStep eager(DncCell& cell, const torch::Tensor& x, const DncState& before) {
  DncStep out;
  DncState& now = out.state;
  now.controller = cell->controller(x, before.reads, before.controller);
  const torch::Tensor& h = now.controller.hidden;
  const std::vector<torch::Tensor> part =
      cell->interface(h).split_with_sizes({kWidth, kWidth, kWidth, kWidth, 1, 1, 1, 2, 3}, 1);
  const auto strength = [](const torch::Tensor& made) {
    return (torch::softplus(made) + 1).unsqueeze(2);
  };
  const torch::Tensor free = part[6].sigmoid().unsqueeze(2), gates = part[7].sigmoid(),
                      allocate = gates.narrow(1, 0, 1);
  const torch::Tensor written = before.write_weights.detach();
  now.usage =
      (before.usage + written - before.usage * written) * (1 - free * before.read_weights).prod(1);
  const torch::Tensor content =
      eager_content(part[1].unsqueeze(1), strength(part[5]), before.memory).squeeze(1);
  now.write_weights =
      gates.narrow(1, 1, 1) * (allocate * eager_allocation(now.usage) + (1 - allocate) * content);
  const torch::Tensor w = now.write_weights.unsqueeze(2);
  now.memory = before.memory * (1 - w * part[2].sigmoid().unsqueeze(1)) + w * part[3].unsqueeze(1);
  now.links = ((1 - w - w.transpose(1, 2)) * before.links + w * before.precedence.unsqueeze(1)) *
              (1 - torch::eye(kRows));
  now.precedence =
      (1 - now.write_weights.sum(1, /*keepdim=*/true)) * before.precedence + now.write_weights;
  out.modes = part[8].softmax(1).unsqueeze(1);
  now.read_weights =
      out.modes.narrow(2, 0, 1) * before.read_weights.matmul(now.links) +
      out.modes.narrow(2, 1, 1) *
          eager_content(part[0].unsqueeze(1), strength(part[4]), now.memory) +
      out.modes.narrow(2, 2, 1) * before.read_weights.matmul(now.links.transpose(1, 2));
  now.reads = now.read_weights.matmul(now.memory);
  out.output = cell->output(torch::cat({h, now.reads.flatten(1)}, 1));
  return out;
}

template <class Cell, class Step>
torch::Tensor run(Cell& cell, const torch::Tensor& input, Step&& step) {
  auto state = cell->start(kBatch);
  std::vector<torch::Tensor> outputs;
  for (const torch::Tensor& x : input.unbind(0)) {
    auto made = step(x, state);
    outputs.push_back(made.output);
    state = std::move(made.state);
  }
  return torch::stack(outputs);
}

template <class Cell>
void expect_no_slower(Cell cell, const char* name) {
  const torch::Tensor input = torch::randn({kSteps, kBatch, kInput});
  const auto ours = [&] {
    return run(cell, input, [&](const auto& x, const auto& state) { return cell(x, state); });
  };
  const auto written_out = [&] {
    return run(cell, input,
               [&](const auto& x, const auto& state) { return eager(cell, x, state); });
  };
  EXPECT_TRUE(torch::allclose(ours(), written_out(), 1e-3, 1e-4)) << name;
  const std::vector<double> taken = medians({ours, written_out}, 21);
  std::printf("%s, %lld steps of %lld sequences: eager takes %.2f x as long; %d threads\n", name,
              static_cast<long long>(kSteps), static_cast<long long>(kBatch), taken[1] / taken[0],
              at::get_num_threads());
  EXPECT_GE(taken[1] / taken[0], 1.0) << name;
}

TEST(MachinesSpeed, ANeuralTuringMachineCostsNoMoreThanEager) {
  torch::manual_seed(1);
  expect_no_slower(
      NtmCell(NtmOptions{
          .input = kInput, .output = kOutput, .rows = kRows, .width = kWidth, .hidden = kHidden}),
      "ntm");
}

TEST(MachinesSpeed, ADifferentiableNeuralComputerCostsNoMoreThanEager) {
  torch::manual_seed(1);
  expect_no_slower(DncCell(DncOptions{.input = kInput,
                                      .output = kOutput,
                                      .rows = kRows,
                                      .width = kWidth,
                                      .read_heads = 1,
                                      .hidden = kHidden}),
                   "dnc");
}

}  // namespace
}  // namespace fovea::nn
