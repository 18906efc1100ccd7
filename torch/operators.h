// The operators fovea::attend, fovea::attend_backward, fovea::attend_double_backward and
// fovea::weights: their C++ signatures, and calls through the dispatcher. The schemas are in
// operators.cc, the public functions in attend.cc. Each kernel is registered in its own file, under
// autograd/, batching/, cpu/, cuda/ and meta/.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>
#include <c10/util/string_view.h>

#include <optional>
#include <tuple>
#include <vector>

#include "torch/call.h"

namespace fovea::operators {

using at::Tensor;
using OptionalTensor = std::optional<Tensor>;

// output, lse ([0] unless wanted), statistics ([0] unless on the CPU), empty_rows (int64 scalar).
using Outputs = std::tuple<Tensor, Tensor, Tensor, Tensor>;
using Attend = Outputs(const Tensor& query, const Tensor& key, const Tensor& value,
                       c10::string_view choices, at::TensorList arrays, c10::SymIntArrayRef numbers,
                       const OptionalTensor& key_lengths, double dropout_p,
                       const OptionalTensor& seed, bool return_lse, bool strict,
                       const OptionalTensor& query_offset, bool check_finite);

// Gradients of query, key, value and each of `arrays`; [0] where `wanted` (3 + arrays flags) is 0.
using Gradients = std::tuple<Tensor, Tensor, Tensor, std::vector<Tensor>>;
using AttendBackward = Gradients(const Tensor& d_output, const OptionalTensor& d_lse,
                                 const Tensor& query, const Tensor& key, const Tensor& value,
                                 at::TensorList arrays, c10::string_view choices,
                                 c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
                                 double dropout_p, const OptionalTensor& seed, const Tensor& output,
                                 const Tensor& statistics, at::IntArrayRef wanted,
                                 const OptionalTensor& query_offset);

// Let G be the gradients of attend_backward, and s = sum_n <G_{given_n}, directions_n>. The results
// are the gradients of s with respect to d_output, d_lse, query, key, value and each array; [0] where
// `wanted` (5 + arrays flags) is 0. This is reverse mode over reverse mode. It serves forward mode
// too, because G is linear in d_output: the first two results are attend's derivative along the
// directions, the others attend_backward's.
using AttendDoubleBackward = std::vector<Tensor>(
    at::TensorList directions, at::IntArrayRef given, const Tensor& d_output,
    const OptionalTensor& d_lse, const Tensor& query, const Tensor& key, const Tensor& value,
    at::TensorList arrays, c10::string_view choices, c10::SymIntArrayRef numbers,
    const OptionalTensor& key_lengths, double dropout_p, const OptionalTensor& seed,
    at::IntArrayRef wanted, const OptionalTensor& query_offset);

using Weights = std::tuple<Tensor, Tensor>(
    const Tensor& query, const Tensor& key, c10::string_view choices, at::TensorList arrays,
    c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths, const OptionalTensor& seed,
    const OptionalTensor& rows, const OptionalTensor& heads, int64_t top_k, bool column_sums,
    const OptionalTensor& query_offset, bool check_finite);

Attend attend;
// fovea::attend_output, which is attend's output and needs no kernel of its own.
Tensor output_of_attend(const Tensor& query, const Tensor& key, const Tensor& value,
                        c10::string_view choices);
AttendBackward attend_backward;
AttendDoubleBackward attend_double_backward;
Weights weights;

// A call in canonical form (see engine_call.h) from an operator's arguments.
Call call_of(const Tensor& query, const Tensor& key, const Tensor& value, c10::string_view choices,
             at::TensorList arrays, c10::SymIntArrayRef numbers, const OptionalTensor& key_lengths,
             double dropout_p, const OptionalTensor& seed, const OptionalTensor& query_offset);
// The same for the operator `weights`, which has no values.
Call weights_call(const Tensor& query, const Tensor& key, c10::string_view choices,
                  at::TensorList arrays, c10::SymIntArrayRef numbers,
                  const OptionalTensor& key_lengths, const OptionalTensor& seed,
                  const OptionalTensor& query_offset);
// The selected weights, checked: rows and heads in range, top_k or column_sums but not both.
Selection selection_of(const Call& call, const OptionalTensor& rows, const OptionalTensor& heads,
                       int64_t top_k, bool column_sums);

}  // namespace fovea::operators
