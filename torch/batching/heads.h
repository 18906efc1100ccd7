// vmap joins the mapped dimension with the heads, which every layout has, packed ones too: V calls of
// H heads become one call of V H heads.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "torch/batching/mapped.h"
#include "torch/call.h"

namespace fovea::operators {

// Operands and what lies like them ([B, H, L, ..] or (total, H, ..)), with `count` times the heads.
at::Tensor into_heads(const Mapped& x, int64_t count);
// The reverse: the mapped dimension becomes dimension 1, before the heads.
at::Tensor out_of_heads(const at::Tensor& x, int64_t count);

// One array of the choices, folded or as it was.
struct FoldedArray {
  at::Tensor value;
  // For its gradient: the array's own sizes, where its heads are once it has them, and whether one
  // set of numbers serves them all. Not folded: dimension -1.
  std::vector<int64_t> sizes;
  int64_t dimension = -1;
  bool shared = false;

  // The gradient of a folded array as one for each item, the mapped dimension first.
  at::Tensor gradient(const at::Tensor& folded, int64_t count) const;
};
// The arrays of choices (a parsed text, holding any tensors in their places); nothing where one
// that is mapped, or whose gradient is wanted for each item, has no dimension for heads.
std::optional<std::vector<FoldedArray>> fold_arrays(Choices choices,
                                                    const std::vector<Mapped>& arrays,
                                                    int64_t heads, int64_t count,
                                                    const std::vector<bool>& wanted);

}  // namespace fovea::operators
