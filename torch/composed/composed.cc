#include "torch/composed/composed.h"

#include "engine/call/facts.h"
#include "torch/composed/block.h"
#include "torch/composed/finite.h"
#include "torch/composed/pages.h"
#include "torch/composed/walk.h"

namespace fovea::composed {
namespace {

using at::Tensor;

// Blocks' results back in the call's layout.
Tensor join(const Call& call, std::vector<Tensor>& parts, at::IntArrayRef empty) {
  const bool packed = is_packed(call.choices.structure);
  if (parts.empty()) return at::zeros(empty, call.query.options());
  const Tensor all = at::cat(parts, 2);  // packed: [1, H, total, ..]
  return packed ? all.squeeze(0).transpose(0, 1).contiguous() : all;
}

}  // namespace

Outputs attend(const Call& given) {
  const Call call = in_arithmetic(out_of_pages(given));
  std::vector<Tensor> outputs, lses;
  Tensor empty = at::zeros({}, call.query.options().dtype(at::kLong).requires_grad(false));
  FirstSpoiled first_spoiled;
  for_each_block(call, [&](const Block& block) {
    const auto [output, lse, saw_nothing, spoiled] = attend_block(call, block);
    if (call.check_finite && spoiled.defined()) first_spoiled.look(block, spoiled);
    outputs.push_back(output);
    if (lse.defined()) lses.push_back(lse);
    empty = empty + saw_nothing.sum();
  });
  first_spoiled.check();
  auto sizes = call.query.sizes().vec();
  const std::vector<int64_t> lse_sizes(sizes.begin(), sizes.end() - 1);
  sizes.back() = call.value.size(-1);
  Outputs result{join(call, outputs, sizes).to(given.query.scalar_type()), {}, empty};
  if (engine::has_lse<Tensor>(call.choices.normaliser)) result.lse = join(call, lses, lse_sizes);
  return result;
}

}  // namespace fovea::composed
