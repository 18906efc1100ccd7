#include "torch/layout.h"

#include "fovea/engine.h"
#include "torch/engine_call.h"

namespace fovea::operators {
namespace {

// a < b; false where symbolic sizes leave it open (libtorch before 2.8 has no such function).
bool is_less(const c10::SymInt& a, const c10::SymInt& b) {
#ifdef TORCH_GUARD_OR_FALSE
  return TORCH_GUARD_OR_FALSE(a.sym_lt(b));
#else
  return a < b;
#endif
}

// Whether x [batch, heads, length, width] lies in memory as rows of all heads: what splitting a
// projection gives.
bool heads_inside_rows(const at::Tensor& x) {
  return x.dim() == 4 && is_less(x.sym_stride(1), x.sym_stride(2));
}

Layout nothing_of(at::ScalarType type) { return {{0}, type}; }

// The query's sizes without the last.
std::vector<c10::SymInt> rows_of(const at::Tensor& query) {
  auto sizes = query.sym_sizes().vec();
  sizes.pop_back();
  return sizes;
}

}  // namespace

Layout output_layout(const at::Tensor& query, const at::Tensor& value) {
  auto sizes = rows_of(query);
  sizes.push_back(value.sym_size(-1));
  return {std::move(sizes), query.scalar_type(), heads_inside_rows(query)};
}

Layout lse_layout(const at::Tensor& query, bool return_lse) {
  if (!return_lse) return nothing_of(arithmetic_type(query));
  return {rows_of(query), arithmetic_type(query)};
}

Layout statistics_layout(const at::Tensor& query) {
  auto sizes = rows_of(query);
  sizes.emplace_back(engine::kStatistics);
  return {std::move(sizes), arithmetic_type(query)};
}

Layout operand_gradient_layout(const at::Tensor& argument) {
  return {argument.sym_sizes().vec(), argument.scalar_type(), heads_inside_rows(argument)};
}

Layout array_gradient_layout(const at::Tensor& array) {
  return {array.sym_sizes().vec(), array.scalar_type()};
}

Layout double_gradient_layout(const at::Tensor& argument, bool wanted) {
  if (!wanted) return no_gradient_layout(argument);
  return {argument.sym_sizes().vec(), argument.scalar_type()};
}

Layout no_gradient_layout(const at::Tensor& argument) { return nothing_of(argument.scalar_type()); }

WeightsLayout weights_layout(const at::Tensor& query, const WeightsExtent& extent,
                             const std::optional<at::Tensor>& rows,
                             const std::optional<at::Tensor>& heads, int64_t top_k,
                             bool column_sums) {
  std::vector<c10::SymInt> sizes{extent.batches, heads ? heads->sym_size(0) : extent.heads};
  if (!column_sums) sizes.push_back(rows ? rows->sym_size(0) : extent.queries);
  sizes.push_back(top_k > 0 ? c10::SymInt(top_k) : extent.keys);
  Layout indices = top_k > 0 ? Layout{sizes, at::kInt} : nothing_of(at::kInt);
  return {{std::move(sizes), arithmetic_type(query)}, std::move(indices)};
}

at::Tensor empty_of(const Layout& layout, const at::Tensor& like) {
  const auto options = like.options().requires_grad(false);
  return tensor_of(layout, [&](c10::SymIntArrayRef sizes, at::ScalarType type) {
    return at::empty_symint(sizes, options.dtype(type));
  });
}

at::Tensor no_statistics(const at::Tensor& query) {
  return empty_of(statistics_layout(query), query).zero_();
}

at::Tensor laid_out(const at::Tensor& x, const Layout& layout) {
  if (!layout.heads_inside_rows) return x.contiguous();
  return x.transpose(1, 2).contiguous().transpose(1, 2);
}

}  // namespace fovea::operators
