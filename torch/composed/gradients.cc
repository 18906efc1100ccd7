// First and second derivatives of the composed formula, by autograd.
#include <torch/csrc/autograd/autograd.h>

#include "torch/composed/composed.h"
#include "torch/composed/pages.h"
#include "torch/composed/recording.h"
#include "torch/composed/walk.h"
#include "torch/engine_call.h"

namespace fovea::composed {
namespace {

using at::Tensor;

// Query, key, value and every array of the choices.
std::vector<Tensor*> tensors_of(Call& call) {
  std::vector<Tensor*> all{&call.query, &call.key, &call.value};
  visit_arrays(call.choices, [&](const char*, Tensor& array) { all.push_back(&array); });
  return all;
}

// Gradients of `ends` for the inputs that require one, spread over all of them.
std::vector<Tensor> spread_gradients(const std::vector<Tensor>& ends,
                                     const std::vector<Tensor>& inputs,
                                     const std::vector<Tensor>& given, bool again) {
  std::vector<Tensor> wanted, result(inputs.size());
  for (const Tensor& x : inputs) {
    if (x.defined() && x.requires_grad()) wanted.push_back(x);
  }
  if (ends.empty() || wanted.empty()) return result;
  const auto gradients =
      torch::autograd::grad(ends, wanted, given, /*retain_graph=*/again, /*create_graph=*/again,
                            /*allow_unused=*/true);
  size_t next = 0;
  for (size_t n = 0; n < inputs.size(); ++n) {
    if (inputs[n].defined() && inputs[n].requires_grad()) result[n] = gradients[next++];
  }
  return result;
}

}  // namespace

std::vector<Tensor> backward(const Call& given, const Tensor& d_output, const Tensor& d_lse,
                             at::IntArrayRef wanted) {
  if (find_structure<Paged>(given.choices.structure)) {
    auto gradients = backward(out_of_pages(given), d_output, d_lse, wanted);
    into_pages(given, gradients);
    return gradients;
  }
  const Recording recording;
  // Leaves of a small graph for each block; their gradients add up.
  Call call = in_arithmetic(given);
  std::vector<Tensor> leaves, sums;
  for (Tensor* x : tensors_of(call)) {
    *x = x->detach();
    const bool want = wanted[leaves.size()] && x->is_floating_point();
    if (want) x->requires_grad_();
    leaves.push_back(*x);
    sums.push_back(want ? at::zeros_like(x->detach()) : Tensor());
  }
  const bool packed = is_packed(call.choices.structure);
  const auto place = [&](const Tensor& gradient) {  // [B, H, L, ..]
    const Tensor wide = gradient.detach().to(call.query.scalar_type());
    return packed ? wide.transpose(0, 1).unsqueeze(0) : wide;
  };
  const Tensor whole = place(d_output), whole_lse = d_lse.defined() ? place(d_lse) : Tensor();
  int64_t row = 0;  // packed sequences follow one another
  for_each_block(call, [&](const Block& block) {
    const int64_t first = packed ? row : block.first;
    row += block.count;
    const auto [output, lse, empty, spoiled] = attend_block(call, block);
    std::vector<Tensor> ends, gradients;
    const auto end = [&](const Tensor& x, const Tensor& gradient) {
      if (!x.defined() || !gradient.defined() || !x.requires_grad()) return;
      ends.push_back(x);
      gradients.push_back(gradient.narrow(2, first, block.count));
    };
    end(output, whole);
    end(lse, whole_lse);
    const auto parts = spread_gradients(ends, leaves, gradients, /*again=*/false);
    const at::NoGradGuard guard;
    for (size_t n = 0; n < parts.size(); ++n) {
      if (parts[n].defined()) sums[n].add_(parts[n]);
    }
  });
  return sums;
}

std::vector<Tensor> double_backward(const Call& given, const Tensor& d_output, const Tensor& d_lse,
                                    const std::vector<Tensor>& second) {
  const bool again = at::GradMode::is_enabled();
  const Recording recording;
  // An alias of its own, so that gradients stop here; joined to the caller's graph where that is
  // still being recorded.
  const auto leaf = [&](const Tensor& x) {
    if (!x.defined() || !x.is_floating_point()) return x;
    return again && x.requires_grad() ? x.view_as(x) : x.detach().requires_grad_();
  };
  Call call = given;
  std::vector<Tensor> operands, inputs{leaf(d_output), leaf(d_lse)};
  for (Tensor* x : tensors_of(call)) {
    *x = leaf(*x);
    operands.push_back(*x);
  }
  inputs.insert(inputs.end(), operands.begin(), operands.end());

  const Outputs outputs = attend(call);
  std::vector<Tensor> ends, given_gradients;
  const auto end = [&](const Tensor& x, const Tensor& gradient) {
    if (!x.defined() || !gradient.defined() || !x.requires_grad()) return;
    ends.push_back(x);
    given_gradients.push_back(gradient.to(x.scalar_type()));
  };
  end(outputs.output, inputs[0]);
  end(outputs.lse, inputs[1]);
  const auto first = spread_gradients(ends, operands, given_gradients, /*again=*/true);

  std::vector<Tensor> firsts, directions;
  for (size_t n = 0; n < first.size(); ++n) {
    if (!first[n].defined() || !first[n].requires_grad() || !second[n].defined()) continue;
    firsts.push_back(first[n]);
    directions.push_back(second[n].to(first[n].scalar_type()).reshape(first[n].sizes()));
  }
  return spread_gradients(firsts, inputs, directions, again);
}

}  // namespace fovea::composed
