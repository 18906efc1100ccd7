// Scores of a few query rows against key rows as they lie, without packing: for when keys are read
// once (decoding).
#pragma once

#include <cstddef>

namespace fovea::engine {

// out[r][j] = q[r] . k[j] for r < rows, j < n.
template <class T>
struct RowScores {
  const T* q;
  size_t q_stride, rows;
  const T* k;
  size_t k_stride, n;
  size_t width;
  T* out;
  size_t out_stride;
  // Rows that are read next, asked for on the way: as many as there are keys.
  const T* next;
  size_t next_stride, next_width;
};

template <class T>
void row_scores(const RowScores<T>& work);

}  // namespace fovea::engine
