// libtorch has two vmaps: that of torch.func, and one that autograd keeps for is_grads_batched.
#pragma once

#include <ATen/ATen.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/PlumbingHelper.h>
#include <ATen/functorch/TensorWrapper.h>

#include <optional>
#include <utility>

// After the others, whose inline functions would find its names too.
#include <ATen/LegacyBatchedTensorImpl.h>

#include "fovea/error.h"

namespace fovea::operators {

struct FuncVmap {
  static constexpr auto kKey = c10::DispatchKey::FuncTorchBatched;

  static int64_t level() { return at::functorch::maybeCurrentDynamicLayer()->layerId(); }
  static std::pair<at::Tensor, std::optional<int64_t>> unwrap(const at::Tensor& x, int64_t& level) {
    auto [value, dimension] = at::functorch::unwrapTensorAtLevel(x, level);
    return {value, dimension};
  }
  static at::Tensor wrap(const at::Tensor& x, int64_t dimension, int64_t level) {
    return at::functorch::makeBatched(x, dimension, level);
  }
};

struct GradientsVmap {
  static constexpr auto kKey = c10::DispatchKey::Batched;

  // That of the first tensor that has one: libtorch keeps the current level for each thread, and on
  // CUDA backward runs on another one than the caller's.
  static int64_t level() { return -1; }
  static std::pair<at::Tensor, std::optional<int64_t>> unwrap(const at::Tensor& x, int64_t& level) {
    const auto* batched = at::maybeGetBatchedImpl(x);
    if (!batched) return {x, std::nullopt};
    if (level < 0) level = batched->bdims()[0].level();
    if (batched->bdims().size() > 1 || batched->bdims()[0].level() != level) {
      throw Unsupported(
          "attend: is_grads_batched inside another is_grads_batched; take torch.func.vmap for one "
          "of "
          "them");
    }
    return {batched->value(), batched->bdims()[0].dim()};
  }
  static at::Tensor wrap(const at::Tensor& x, int64_t dimension, int64_t level) {
    return at::addBatchDim(x, level, dimension);
  }
};

// Without the wrappers of any level of either, nor of torch.func.grad.
inline at::Tensor bare(at::Tensor x) {
  for (;;) {
    if (const auto* legacy = at::maybeGetBatchedImpl(x))
      x = legacy->value();
    else if (const auto* batched = at::functorch::maybeGetBatchedImpl(x))
      x = batched->value();
    else if (const auto* wrapper = at::functorch::maybeGetTensorWrapper(x))
      x = wrapper->value();
    else
      return x;
  }
}

}  // namespace fovea::operators
