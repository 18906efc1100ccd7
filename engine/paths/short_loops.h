// Attention of a few queries over a few keys. Rows are read in place, nothing is packed, and only
// the scores of one query are stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/engine.h"

namespace fovea::engine {

// Most keys of a query, and most numbers in a row: the scores and a converted row are on the stack.
inline constexpr size_t kShortKeys = 1024, kShortWidth = 512;

// Heads of one item of the batch. Strides count elements; query, key, value and output are of the
// stored type.
template <class T>
struct ShortHeads {
  struct Rows {
    const void* data = nullptr;
    int64_t head = 0, row = 0;  // strides
  };
  Rows query, key, value;
  void* output = nullptr;
  int64_t output_head = 0, output_row = 0;
  T* lse = nullptr;         // or nothing
  T* statistics = nullptr;  // or nothing; kStatistics per row
  int64_t lse_head = 0, lse_row = 0, statistics_head = 0, statistics_row = 0;
  size_t group = 1;  // query heads of a key head
  size_t width = 0, value_width = 0;
  T scale = 1;
  // Query row i sees keys [begin[i], end[i]), at most kShortKeys of them.
  const uint32_t *begin = nullptr, *end = nullptr;
  size_t rows = 0;
};

// Rows that saw no key, and the first head * rows + row that saw a score of NaN or +infinity.
struct ShortOutcome {
  int64_t empty = 0;
  size_t spoiled = SIZE_MAX;
};

// Backward keeps all pairs of a head: rows of short_stride(keys) of them, whole vectors.
inline constexpr size_t kShortRows = 64, kShortPairs = 4096;
inline constexpr size_t short_stride(size_t keys) { return keys + 32; }

// The query heads of one key head, backward. Scores are added up in the same order as in forward,
// because the saved statistics hold the largest of exactly these scores.
template <class T>
struct ShortGradients {
  ShortHeads<T> forward;  // with statistics
  typename ShortHeads<T>::Rows d_output;
  const T* d_lse = nullptr;  // or nothing
  int64_t d_lse_head = 0, d_lse_row = 0;
  void* d_query = nullptr;  // of the stored type, or nothing
  int64_t d_query_head = 0, d_query_row = 0;
  size_t keys = 0;
  T *d_key = nullptr, *d_value = nullptr;  // [keys, width], [keys, value_width], overwritten
};
template <class T>
void short_gradients(DType stored, const ShortGradients<T>& gradients, size_t key_head);

// Heads [from, to), for a stored type that is computed in T.
template <class T>
ShortOutcome short_heads(DType stored, const ShortHeads<T>& heads, size_t from, size_t to);

}  // namespace fovea::engine
