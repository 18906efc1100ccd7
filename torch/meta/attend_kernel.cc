// Shapes without data, for torch.compile and fake tensors. Sizes may be symbolic.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/engine_call.h"
#include "torch/operators.h"
#include "torch/spec.h"

namespace fovea::operators {
namespace {

Tensor empty_like_query(const Tensor& query, std::optional<c10::SymInt> last, at::ScalarType type) {
  auto sizes = query.sym_sizes().vec();
  if (last)
    sizes.back() = *last;
  else
    sizes.pop_back();
  return at::empty_symint(sizes, query.options().dtype(type));
}

// As the CPU's kernel lays it out.
Tensor empty_laid_out_as(const Tensor& like, std::vector<c10::SymInt> sizes) {
  if (!like.device().is_cpu() || !heads_inside_rows(like))
    return at::empty_symint(sizes, like.options());
  std::swap(sizes[1], sizes[2]);
  return at::empty_symint(sizes, like.options()).transpose(1, 2);
}

Outputs attend_meta(const Tensor& query, const Tensor& key, const Tensor& value, c10::string_view,
                    at::TensorList, const OptionalTensor&, double, const OptionalTensor&,
                    bool return_lse, bool) {
  for (const auto& [x, name] : {std::pair{&query, "query"}, {&key, "key"}, {&value, "value"}}) {
    if (x->dim() != query.dim() || x->dim() < 3 || x->dim() > 4) {
      throw InvalidArgument(std::string(name) + ": rank " + std::to_string(x->dim()) +
                            ", expected 4, or 3 for packed tensors");
    }
  }
  const auto type = arithmetic_type(query);
  const Tensor none = at::empty({0}, query.options().dtype(type));
  auto sizes = query.sym_sizes().vec();
  sizes.back() = value.sym_size(-1);
  return {empty_laid_out_as(query, sizes),
          return_lse ? empty_like_query(query, std::nullopt, type) : none,
          query.device().is_cuda()
              ? at::empty_like(none)
              : empty_like_query(query, c10::SymInt(engine::kStatistics), type),
          at::empty({}, query.options().dtype(at::kLong))};
}

Gradients attend_backward_meta(const Tensor&, const OptionalTensor&, const Tensor& query,
                               const Tensor& key, const Tensor& value, at::TensorList arrays,
                               c10::string_view, const OptionalTensor&, double,
                               const OptionalTensor&, const Tensor&, const Tensor&,
                               at::IntArrayRef wanted) {
  const auto give = [&](size_t n, const Tensor& argument) {
    if (!wanted[n] || !argument.is_floating_point()) return nothing(argument);
    return n < 3 ? empty_laid_out_as(argument, argument.sym_sizes().vec())
                 : at::empty_symint(argument.sym_sizes(), argument.options());
  };
  std::vector<Tensor> d_arrays;
  for (size_t n = 0; n < arrays.size(); ++n) d_arrays.push_back(give(3 + n, arrays[n]));
  return {give(0, query), give(1, key), give(2, value), d_arrays};
}

// [B, heads, rows, S], or what the selection makes of it.
std::tuple<Tensor, Tensor> weights_meta(const Tensor& query, const Tensor& key,
                                        c10::string_view choices, at::TensorList arrays,
                                        const OptionalTensor&, const OptionalTensor&,
                                        const OptionalTensor& rows, const OptionalTensor& heads,
                                        int64_t top_k, bool column_sums) {
  const Structure structure = unflatten({choices.data(), choices.size()}, arrays).structure;
  if (find_structure<Ragged>(structure))
    throw Unsupported("weights: a ragged batch's shape depends on its offsets' values");
  const bool packed = is_packed(structure);
  const int64_t row = packed ? 0 : 2;
  std::vector<c10::SymInt> sizes{packed ? c10::SymInt(1) : query.sym_size(0),
                                 heads ? heads->sym_size(0) : query.sym_size(1)};
  if (!column_sums) sizes.push_back(rows ? rows->sym_size(0) : query.sym_size(row));
  sizes.push_back(top_k > 0 ? c10::SymInt(top_k) : key.sym_size(row));
  return {at::empty_symint(sizes, query.options().dtype(arithmetic_type(query))),
          at::empty_symint(top_k > 0 ? sizes : std::vector<c10::SymInt>{0},
                           query.options().dtype(at::kInt))};
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, Meta, m) {
  m.impl("weights", weights_meta);
  m.impl("attend", attend_meta);
  m.impl("attend_backward", attend_backward_meta);
}

}  // namespace fovea::operators
