// A few query rows that share a key head, against a part of its keys, which are read once in place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/engine.h"

namespace fovea::engine {

// Keys in a part. With several rows, the keys and values of a part stay in the second-level cache
// from the first row to the last.
inline constexpr size_t kDecodePart = 256;

// A row's state after a part: largest score, sum of weights, whether it saw a key, output before
// division; states of rows follow each other.
inline constexpr size_t kDecodeState = 3;

// Where the rows of a part lie: `stride` elements apart, from `data` on; or in pages.
struct DecodeRows {
  const void* data = nullptr;  // of the stored type
  int64_t stride = 0;
  // In pages: row j is row (first + j) % page_rows of page pages[(first + j) / page_rows], which
  // starts page_stride elements after the page before. `data` is the first page then.
  const int32_t* pages = nullptr;
  int64_t page_stride = 0;
  size_t page_rows = 0, first = 0;
};

template <class T>
struct DecodePart {
  const T* query = nullptr;  // [rows, width], from decode_query
  size_t rows = 0, width = 0, value_width = 0;
  DecodeRows key, value;
  // Row r sees keys [begin[r], end[r]) of the part, at most kDecodePart of them.
  const uint32_t *begin = nullptr, *end = nullptr;
  // How many of the keys after these to prefetch, and whether to prefetch values: if they are not in
  // the second-level cache.
  size_t keys_ahead = 0;
  bool values_ahead = false;
  T* scores = nullptr;  // [rows, kDecodeScores]
  T* states = nullptr;  // [rows, kDecodeState + value_width]
};
inline constexpr size_t kDecodeScores = kDecodePart + 64;  // with room for whole vectors

// For a stored type that is computed in T: a query row, scaled, its numbers in the order in which the
// keys' are loaded; and a part.
template <class T>
void decode_query(DType stored, const void* row, size_t width, T scale, T* out);
template <class T>
void decode_part(DType stored, const DecodePart<T>& part);

}  // namespace fovea::engine
