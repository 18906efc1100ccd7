// Shapes without data, for torch.compile and fake tensors. Sizes may be symbolic.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/engine_call.h"
#include "torch/layout.h"
#include "torch/lists.h"
#include "torch/operators.h"
#include "torch/spec.h"

namespace fovea::operators {
namespace {

// One meta tensor among real ones would bring a call here, and nothing would be computed.
void check_traced(const Tensor& query, const Tensor& key, const Tensor& value,
                  c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
                  std::initializer_list<std::pair<const char*, const OptionalTensor&>> others) {
  for (const auto& [x, name] : {std::pair{&query, "query"}, {&key, "key"}, {&value, "value"}})
    check_operand(name, *x, query);
  Choices chosen = unflatten({choices.data(), choices.size()}, arrays, numbers);
  visit_arrays(chosen,
               [&](const char* name, const Tensor& array) { check_device(name, array, query); });
  // Lengths and the like may be on the host.
  for (const auto& [name, tensor] : others) {
    if (tensor && !query.is_meta()) check_device(name, *tensor, query);
  }
}

Outputs attend_meta(const Tensor& query, const Tensor& key, const Tensor& value,
                    c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
                    const OptionalTensor& key_lengths, double, const OptionalTensor& seed,
                    bool return_lse, bool, const OptionalTensor& query_offset, bool) {
  check_traced(query, key, value, choices, arrays, numbers,
               {{"key_lengths", key_lengths}, {"seed", seed}, {"query_offset", query_offset}});
  return {empty_of(output_layout(query, value), query),
          empty_of(lse_layout(query, return_lse), query), empty_of(statistics_layout(query), query),
          at::empty({}, query.options().dtype(at::kLong))};
}

Gradients attend_backward_meta(const Tensor&, const OptionalTensor&, const Tensor& query,
                               const Tensor& key, const Tensor& value, at::TensorList arrays,
                               c10::string_view, c10::SymIntArrayRef, const OptionalTensor&, double,
                               const OptionalTensor&, const Tensor&, const Tensor&,
                               at::IntArrayRef wanted, const OptionalTensor&) {
  const auto give = [&](size_t n, const Tensor& argument) {
    if (!wanted[n] || !argument.is_floating_point())
      return empty_of(no_gradient_layout(argument), argument);
    return empty_of(n < 3 ? operand_gradient_layout(argument) : array_gradient_layout(argument),
                    argument);
  };
  std::vector<Tensor> d_arrays;
  for (size_t n = 0; n < arrays.size(); ++n) d_arrays.push_back(give(3 + n, arrays[n]));
  return {give(0, query), give(1, key), give(2, value), d_arrays};
}

std::tuple<Tensor, Tensor> weights_meta(
    const Tensor& query, const Tensor& key, c10::string_view choices, at::TensorList arrays,
    c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths, const OptionalTensor& seed,
    const OptionalTensor& rows, const OptionalTensor& heads, int64_t top_k, bool column_sums,
    const OptionalTensor& query_offset, bool) {
  check_traced(query, key, key, choices, arrays, numbers,
               {{"key_lengths", key_lengths},
                {"seed", seed},
                {"rows", rows},
                {"heads", heads},
                {"query_offset", query_offset}});
  const Structure structure =
      unflatten({choices.data(), choices.size()}, arrays, numbers).structure;
  if (find_structure<Ragged>(structure))
    throw Unsupported("weights: a ragged batch's shape depends on its offsets' values");
  const bool packed = is_packed(structure);
  const int64_t row = packed ? 0 : 2;
  const auto* paged = find_structure<Paged>(structure);
  const WeightsExtent extent{
      packed ? c10::SymInt(1) : query.sym_size(0), query.sym_size(1), query.sym_size(row),
      paged ? paged->table.sym_size(1) * key.sym_size(1) : key.sym_size(row)};
  const WeightsLayout layout = weights_layout(query, extent, rows, heads, top_k, column_sums);
  return {empty_of(layout.weights, query), empty_of(layout.indices, query)};
}

std::vector<Tensor> attend_double_backward_meta(
    at::TensorList, at::IntArrayRef, const Tensor& d_output, const OptionalTensor& d_lse,
    const Tensor& query, const Tensor& key, const Tensor& value, at::TensorList arrays,
    c10::string_view, c10::SymIntArrayRef, const OptionalTensor&, double, const OptionalTensor&,
    at::IntArrayRef wanted, const OptionalTensor&) {
  std::vector<Tensor> arguments{d_output, d_lse.value_or(d_output), query, key, value};
  arguments.insert(arguments.end(), arrays.begin(), arrays.end());
  for (size_t n = 0; n < arguments.size(); ++n) {
    arguments[n] = empty_of(double_gradient_layout(arguments[n], wanted[n]), arguments[n]);
  }
  return arguments;
}

}  // namespace

TORCH_LIBRARY_IMPL(fovea, Meta, m) {
  m.impl("weights", with_lists<weights_meta>());
  m.impl("attend", with_lists<attend_meta>());
  m.impl("attend_backward", attend_backward_meta);
  m.impl("attend_double_backward", attend_double_backward_meta);
}

}  // namespace fovea::operators
