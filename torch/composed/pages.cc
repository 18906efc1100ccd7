#include "torch/composed/pages.h"

#include <ATen/ATen.h>

namespace fovea::composed {
namespace {

using at::Tensor;

// [B, pages of an item]. Past an item's keys a table may have anything; there any page does.
Tensor pages_of(const Paged& paged, const Tensor& pool) {
  const Tensor table = paged.table.to(pool.device(), at::kLong, /*non_blocking=*/true);
  return table.clamp(0, std::max<int64_t>(pool.size(0) - 1, 0));
}

}  // namespace

Call out_of_pages(const Call& call) {
  const auto* paged = find_structure<Paged>(call.choices.structure);
  if (!paged) return call;
  const auto rows = [&](const Tensor& pool) {
    const int64_t batches = paged->table.size(0), keys = paged->table.size(1) * pool.size(1);
    if (pool.size(0) == 0 || keys == 0)  // no page to take: no item has a key
      return at::zeros({batches, pool.size(2), keys, pool.size(3)}, pool.options());
    return pool.index({pages_of(*paged, pool)})
        .reshape({batches, keys, pool.size(2), pool.size(3)})
        .transpose(1, 2);
  };
  Call plain = call;
  plain.key = rows(call.key);
  plain.value = rows(call.value);
  plain.key_lengths = paged->lengths;
  std::erase_if(plain.choices.structure.all_of,
                [](const auto& part) { return std::holds_alternative<Paged>(part); });
  return plain;
}

void into_pages(const Call& call, std::vector<Tensor>& gradients) {
  const auto* paged = find_structure<Paged>(call.choices.structure);
  if (!paged) return;
  const auto back = [&](const Tensor& gradient, const Tensor& pool) {
    if (!gradient.defined()) return gradient;
    Tensor sum = at::zeros(pool.sizes(), gradient.options());
    if (gradient.numel() == 0 || pool.size(0) == 0) return sum;
    const Tensor pages = pages_of(*paged, pool);
    const Tensor each = gradient.transpose(1, 2).reshape(
        {pages.size(0), pages.size(1), pool.size(1), pool.size(2), pool.size(3)});
    return sum.index_put_({pages}, each, /*accumulate=*/true);
  };
  gradients[1] = back(gradients[1], call.key);
  gradients[2] = back(gradients[2], call.value);
  // The arrays of structures come last and have no gradients; the table and the lengths are among
  // the call's.
  size_t arrays = 3;
  Choices choices = call.choices;
  visit_arrays(choices, [&](const char*, Tensor&) { ++arrays; });
  gradients.resize(arrays);
}

}  // namespace fovea::composed
