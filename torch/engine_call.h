// From tensors to the engine's views: what the CPU kernels and the checks of every path share.
#pragma once

#include <vector>

#include "fovea/engine.h"
#include "torch/call.h"

namespace fovea {

// The call in the form the engine reads: integers as int32, parameters in the arithmetic type
// (float32, or float64 for float64), rows contiguous. Throws InvalidArgument for types that would
// need a guess.
Call canonical(Call call);

// Throws InvalidArgument where `x` is sparse, quantised, nested or in oneDNN's layout.
void check_dense(const char* name, const at::Tensor& x);
// Throws InvalidArgument where `x` is on another device than the query.
void check_device(const char* name, const at::Tensor& x, const at::Tensor& query);
// The same for query, key or value of a rank or type that is never right. Reads no numbers.
void check_operand(const char* name, const at::Tensor& x, const at::Tensor& query);

// By which what is known of a graph is kept (array_memo.h).
inline std::vector<at::Tensor> arrays_of(const Graph& graph) {
  return {graph.row_offsets, graph.columns};
}

// The type of arithmetic, of parameters' gradients, of lse and statistics.
inline at::ScalarType arithmetic_type(const at::Tensor& query) {
  return query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

engine::View view_of(const at::Tensor& tensor);
// Views of a canonical call, which must outlive them.
engine::Problem problem_of(const Call& call);
engine::Score views_of(const Score& score);
engine::Normaliser views_of(const Normaliser& normaliser);

// Throws InvalidArgument or Unsupported for a canonical call on any device; small arrays of a
// device are read on the host, and a graph's when it is first met.
void check_call(const Call& call, bool return_lse = false);

// libtorch's threads; the engine's own in a child after fork.
const engine::Parallel& torch_parallel();

}  // namespace fovea
