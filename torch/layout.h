// Sizes, type and memory order of the operators' results, before they are allocated. The kernels of
// every device and the meta kernels use these, so that a trace has the same layout as a run.
#pragma once

#include <ATen/ATen.h>

#include <optional>
#include <utility>
#include <vector>

namespace fovea::operators {

struct Layout {
  std::vector<c10::SymInt> sizes;
  at::ScalarType type = at::kFloat;
  // [batch, length, heads, width] in memory: joining the heads again is then a view.
  bool heads_inside_rows = false;
};

// attend's results. The output is laid out as the query is.
Layout output_layout(const at::Tensor& query, const at::Tensor& value);
Layout lse_layout(const at::Tensor& query, bool return_lse);
Layout statistics_layout(const at::Tensor& query);
// The gradient of query, key or value, laid out as the argument is; of an array of the choices.
Layout operand_gradient_layout(const at::Tensor& argument);
Layout array_gradient_layout(const at::Tensor& array);
// The gradients of a gradient: plain.
Layout double_gradient_layout(const at::Tensor& argument, bool wanted);
// For what was not wanted.
Layout no_gradient_layout(const at::Tensor& argument);

// The extent of a problem as the operator of weights sees it.
struct WeightsExtent {
  c10::SymInt batches, heads, queries, keys;
};
struct WeightsLayout {
  Layout weights, indices;
};
WeightsLayout weights_layout(const at::Tensor& query, const WeightsExtent& extent,
                             const std::optional<at::Tensor>& rows,
                             const std::optional<at::Tensor>& heads, int64_t top_k,
                             bool column_sums);

// A tensor of a layout in memory of `allocate(sizes, type)`.
template <class Allocate>
at::Tensor tensor_of(Layout layout, const Allocate& allocate) {
  if (!layout.heads_inside_rows) return allocate(layout.sizes, layout.type);
  std::swap(layout.sizes[1], layout.sizes[2]);
  return allocate(layout.sizes, layout.type).transpose(1, 2);
}
at::Tensor empty_of(const Layout& layout, const at::Tensor& like);  // on its device
// Of a path that saves none: zeros, so that a call returns the same whenever it runs.
at::Tensor no_statistics(const at::Tensor& query);
// `x` in a layout: itself where it lies so already, else a copy. Differentiable.
at::Tensor laid_out(const at::Tensor& x, const Layout& layout);

}  // namespace fovea::operators
