// The reference: attention written as its equations, one row at a time. It shares no code with the
// kernels.
//
//   e_ij = score(q_i, k_j),  a_i = normalise(e_i over N(i)),  o_i = sum_{j in N(i)} a_ij v_j
//   dV = A' dO,  dA = dO V',  dE = normaliser'(dA),  then through modifiers and score
//
// Tests of a float32 problem compare with its result in double, and take their tolerance from the
// error of its result in float. For a float64 problem: long double and double.
#pragma once

#include <string>
#include <vector>

#include "engine/reference/tensor.h"
#include "fovea/engine.h"

namespace fovea::reference {

// One query's row: the keys it sees with their final scores and weights (before dropout).
template <class T>
struct WeightRow {
  int64_t batch, head, query;
  std::vector<int64_t> keys;
  std::vector<T> scores, weights;
};

template <class T>
struct Forward {
  Tensor<T> output;    // the query's shape, with the value's width
  std::vector<T> lse;  // one per row of output; empty where the normaliser has none
  int64_t empty_rows = 0;
  std::vector<WeightRow<T>> rows;
};

template <class T>
struct Backward {
  Tensor<T> query, key, value;
  // Of the arrays in the choices, in the order of fields; empty for an array that is absent.
  std::vector<Tensor<T>> score, normaliser;
  std::vector<std::vector<Tensor<T>>> modifiers;
};

template <class T>
Forward<T> forward(const engine::Problem&);

// `d_output` and `d_lse` are the loss gradients at the outputs; d_lse may be empty.
template <class T>
Backward<T> backward(const engine::Problem&, const engine::View& d_output,
                     const engine::View& d_lse);

}  // namespace fovea::reference
