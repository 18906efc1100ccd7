#include "torch/operators.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include "torch/dispatch.h"
#include "torch/engine_call.h"
#include "torch/find_operator.h"
#include "torch/lists.h"
#include "torch/spec.h"

TORCH_LIBRARY_FRAGMENT(fovea, m) {
  m.def(
      "attend(Tensor query, Tensor key, Tensor value, str choices, Tensor?[] arrays, SymInt[]? "
      "numbers=None, Tensor? key_lengths=None, float dropout_p=0.0, Tensor? seed=None, bool "
      "return_lse=False, bool strict=False, Tensor? query_offset=None, bool check_finite=False) "
      "-> (Tensor output, Tensor lse, Tensor statistics, Tensor empty_rows)");
  // The short form of the operator, with the arguments of most calls: a tiny call spends most of its
  // time in the dispatcher.
  m.def("attend_output(Tensor query, Tensor key, Tensor value, str choices) -> Tensor",
        fovea::operators::output_of_attend);
  m.def(
      "attend_backward(Tensor d_output, Tensor? d_lse, Tensor query, Tensor key, Tensor value, "
      "Tensor[] arrays, str choices, SymInt[] numbers, Tensor? key_lengths, float dropout_p, "
      "Tensor? seed, Tensor output, Tensor statistics, int[] wanted, Tensor? query_offset=None) "
      "-> (Tensor d_query, Tensor d_key, Tensor d_value, Tensor[] d_arrays)");
  m.def(
      "attend_double_backward(Tensor[] directions, int[] given, Tensor d_output, Tensor? d_lse, "
      "Tensor query, Tensor key, Tensor value, Tensor[] arrays, str choices, SymInt[] numbers, "
      "Tensor? key_lengths, float dropout_p, Tensor? seed, int[] wanted, Tensor? "
      "query_offset=None) -> Tensor[]");
  m.def(
      "weights(Tensor query, Tensor key, str choices, Tensor?[] arrays, SymInt[]? numbers=None, "
      "Tensor? key_lengths=None, Tensor? seed=None, Tensor? rows=None, Tensor? heads=None, int "
      "top_k=0, bool column_sums=False, Tensor? query_offset=None, bool check_finite=False) -> "
      "(Tensor weights, Tensor indices)");
  m.def(
      "explain_dispatch(Tensor query, Tensor key, Tensor value, str choices, Tensor[] arrays, "
      "SymInt[] numbers=[], Tensor? key_lengths=None, float dropout_p=0.0, bool return_lse=False, "
      "Tensor? query_offset=None) -> str",
      [](const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
         c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
         const std::optional<at::Tensor>& key_lengths, double dropout_p, bool return_lse,
         const std::optional<at::Tensor>& query_offset) {
        const auto call = fovea::operators::call_of(query, key, value, choices, arrays, numbers,
                                                    key_lengths, dropout_p, {}, query_offset);
        fovea::check_call(call);
        return fovea::explain(call, return_lse);
      });
}

namespace fovea::operators {
Outputs attend(const Tensor& query, const Tensor& key, const Tensor& value,
               c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
               const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
               bool return_lse, bool strict, const OptionalTensor& query_offset,
               bool check_finite) {
  static const auto op = find_operator<WithLists<Attend>::Type>("fovea::attend");
  return WithLists<Attend>::through(op, query, key, value, choices, arrays, numbers, key_lengths,
                                    dropout_p, seed, return_lse, strict, query_offset,
                                    check_finite);
}

Tensor output_of_attend(const Tensor& query, const Tensor& key, const Tensor& value,
                        c10::string_view choices) {
  return std::get<0>(attend(query, key, value, choices, {}, {}, {}, /*dropout_p=*/0, {},
                            /*return_lse=*/false, /*strict=*/false, /*query_offset=*/{},
                            /*check_finite=*/false));
}

Gradients attend_backward(const Tensor& d_output, const OptionalTensor& d_lse, const Tensor& query,
                          const Tensor& key, const Tensor& value, at::TensorList arrays,
                          c10::string_view choices, c10::SymIntArrayRef numbers,
                          const OptionalTensor& key_lengths, double dropout_p,
                          const OptionalTensor& seed, const Tensor& output,
                          const Tensor& statistics, at::IntArrayRef wanted,
                          const OptionalTensor& query_offset) {
  static const auto op = find_operator<AttendBackward>("fovea::attend_backward");
  return op.call(d_output, d_lse, query, key, value, arrays, choices, numbers, key_lengths,
                 dropout_p, seed, output, statistics, wanted, query_offset);
}

std::vector<Tensor> attend_double_backward(at::TensorList directions, at::IntArrayRef given,
                                           const Tensor& d_output, const OptionalTensor& d_lse,
                                           const Tensor& query, const Tensor& key,
                                           const Tensor& value, at::TensorList arrays,
                                           c10::string_view choices, c10::SymIntArrayRef numbers,
                                           const OptionalTensor& key_lengths, double dropout_p,
                                           const OptionalTensor& seed, at::IntArrayRef wanted,
                                           const OptionalTensor& query_offset) {
  static const auto op = find_operator<AttendDoubleBackward>("fovea::attend_double_backward");
  return op.call(directions, given, d_output, d_lse, query, key, value, arrays, choices, numbers,
                 key_lengths, dropout_p, seed, wanted, query_offset);
}

std::tuple<Tensor, Tensor> weights(const Tensor& query, const Tensor& key, c10::string_view choices,
                                   at::TensorList arrays, c10::SymIntArrayRef numbers,
                                   const OptionalTensor& key_lengths, const OptionalTensor& seed,
                                   const OptionalTensor& rows, const OptionalTensor& heads,
                                   int64_t top_k, bool column_sums,
                                   const OptionalTensor& query_offset, bool check_finite) {
  static const auto op = find_operator<WithLists<Weights>::Type>("fovea::weights");
  return WithLists<Weights>::through(op, query, key, choices, arrays, numbers, key_lengths, seed,
                                     rows, heads, top_k, column_sums, query_offset, check_finite);
}

Call call_of(const Tensor& query, const Tensor& key, const Tensor& value, c10::string_view choices,
             at::TensorList arrays, c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
             double dropout_p, const OptionalTensor& seed, const OptionalTensor& query_offset) {
  Call call{query, key,       value, unflatten({choices.data(), choices.size()}, arrays, numbers),
            {},    dropout_p, 0};
  if (key_lengths) call.key_lengths = *key_lengths;
  if (query_offset) call.query_offset = *query_offset;
  if (seed) {
    if (seed->numel() != 1 || seed->scalar_type() != at::kLong) {
      throw InvalidArgument("seed: " + std::to_string(seed->numel()) + " elements of " +
                            c10::toString(seed->scalar_type()) + ", expected one int64");
    }
    call.seed = static_cast<uint64_t>(seed->item<int64_t>());
  }
  return canonical(std::move(call));
}

Call weights_call(const Tensor& query, const Tensor& key, c10::string_view choices,
                  at::TensorList arrays, c10::SymIntArrayRef numbers,
                  const OptionalTensor& key_lengths, const OptionalTensor& seed,
                  const OptionalTensor& query_offset) {
  // Values of width 1, because the weights do not depend on the values.
  const Tensor value = key.dim() > 0 && key.size(-1) > 0 ? key.narrow(-1, 0, 1) : key;
  Call call =
      call_of(query, key, value, choices, arrays, numbers, key_lengths, 0, seed, query_offset);
  for (auto& modifier : call.choices.score.modifiers) {
    if (auto* relative = std::get_if<Relative>(&modifier)) relative->value_table = Tensor();
  }
  return call;
}

Selection selection_of(const Call& call, const OptionalTensor& rows, const OptionalTensor& heads,
                       int64_t top_k, bool column_sums) {
  Selection selection{.rows = {}, .heads = {}, .top_k = top_k, .column_sums = column_sums};
  const bool packed = is_packed(call.choices.structure);
  const auto list = [&](const char* name, const OptionalTensor& given, int64_t count) {
    if (!given) return Tensor();
    if (given->dim() != 1 || !at::isIntegralType(given->scalar_type(), /*includeBool=*/false)) {
      throw InvalidArgument(std::string(name) + ": rank " + std::to_string(given->dim()) + " of " +
                            c10::toString(given->scalar_type()) + ", expected a list of integers");
    }
    const Tensor wide = given->to(at::kLong);  // libtorch compares few unsigned types
    const Tensor outside = wide.masked_select((wide < 0) | (wide >= count));
    if (outside.numel() > 0) {
      throw InvalidArgument(std::string(name) + ": " + std::to_string(outside[0].item<int64_t>()) +
                            ", expected 0 .. " + std::to_string(count - 1));
    }
    return wide.to(call.query.device(), at::kInt).contiguous();
  };
  selection.rows = list("rows", rows, call.query.size(packed ? 0 : 2));
  selection.heads = list("heads", heads, call.query.size(1));
  if (top_k < 0 || top_k > INT32_MAX) {
    throw InvalidArgument("top_k: " + std::to_string(top_k) +
                          ", expected 0 .. 2147483647 (keys have numbers of 32 bits)");
  }
  if (top_k > 0 && column_sums)
    throw InvalidArgument("column_sums: given with top_k, expected one of them");
  return selection;
}

}  // namespace fovea::operators
