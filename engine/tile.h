// A tile: nq queries x nk keys of one head. Stages see only this.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::engine {

class PrefetchList;

// Tiles are at most kMaxQueries x kMaxKeys (a threshold normaliser's strip: any number of keys).
inline constexpr size_t kMaxQueries = 64;
inline constexpr size_t kMaxKeys = 512;
// Key panels hold this many keys each; a tile that has panels starts at the first key of one.
inline constexpr size_t kPanelKeys = 64;
// Rows of score tiles are padded to a multiple of this many columns, whole vectors for every
// target.
inline constexpr size_t kRowPadding = 16;

// Row state that lives while a block of queries meets its keys, one entry a row, padded to a whole
// vector.
template <class T>
struct RowState {
  T* maximum;  // running maximum (softmax family)
  T* sum;      // running sum of weights
  T* carry;  // factor for what earlier tiles have aggregated, set by the normaliser with each tile
  T* stats;  // [rows][kStatistics], saved for backward
};

// An array added to the scores of a tile: row r and column c take data[r * stride + c]. Nothing
// where data is null.
template <class T>
struct Addend {
  const T* data = nullptr;
  ptrdiff_t stride = 0;
};

template <class T>
struct Tile {
  // Which pairs: rows [q0, q0 + nq) and keys [k0, k0 + nk) of the sequence; `head` is the query's
  // head. Arrays are indexed by rows; row r stands at position r + query_offset among the keys.
  size_t batch = 0, head = 0;
  size_t q0 = 0, nq = 0, k0 = 0, nk = 0;
  int64_t query_offset = 0;
  // Gathered tiles (graphs): the place of each key (or the row of each query), otherwise null and
  // contiguous.
  const int32_t* key_index = nullptr;
  size_t edge0 = 0;  // of a graph's row: the number of its first key's edge
  const int32_t* query_index = nullptr;

  // The mask. If `masked`, row r sees only columns [begin[r], end[r]), and of those, if `keep` is
  // not null, only the ones with keep[r * keep_stride + c] != 0. Otherwise it sees all.
  bool masked = false;
  const int32_t* begin = nullptr;
  const int32_t* end = nullptr;
  const uint8_t* keep = nullptr;
  size_t keep_stride = 0;

  // Operands in the arithmetic type, one row per item: query, key and value as prepared by the
  // score, gradient of the output.
  const T* q = nullptr;
  size_t q_stride = 0;
  const T* k = nullptr;
  size_t k_stride = 0;
  const T* v = nullptr;
  size_t v_stride = 0;
  const T* g = nullptr;
  size_t g_stride = 0;
  const T* k_panel = nullptr;  // ceil(nk / kPanelKeys) panels of the score's panel_size() each
  const T* v_panel = nullptr;  // the values' panels, for dA = g v' (backward)
  size_t value_width = 0;
  bool finite =
      true;  // no operand row of this tile holds NaN or infinity: zero weights may be multiplied

  // [nq][s_stride], rows padded to kRowPadding. After the score and the modifiers the driver writes
  // the masked value to masked entries and to the padding: -infinity, or 0 for Face::kValue; in ds
  // 0.
  T* s = nullptr;    // scores, then weights
  T* ds = nullptr;   // gradient of weights, then of scores
  T* raw = nullptr;  // the score before modifiers, if the score's backward needs it
  const T* scores =
      nullptr;  // backward: the scores that the weights came from, if the normaliser needs them
  size_t s_stride = 0;
  Addend<T> addend{};  // what a score that adds() adds as it stores

  // Results.
  T* o = nullptr;
  size_t o_stride = 0;
  T* dq = nullptr;
  size_t dq_stride = 0;
  T* dk = nullptr;
  size_t dk_stride = 0;
  T* dv = nullptr;
  size_t dv_stride = 0;
  bool first = false;  // the first tile for these results: store instead of add

  // Threshold normalisers: where not null, `solve` leaves the weights of row r closed up, so that
  // few values need be read: s[r * s_stride + i], i < support_count[r], is the weight of column
  // support[r * s_stride + i], columns ascending.
  int32_t* support = nullptr;
  int32_t* support_count = nullptr;

  RowState<T> rows{};
  const T* stats = nullptr;  // backward: saved statistics of these rows, [nq][kStatistics]
  const T* row_term =
      nullptr;  // backward: sum_j a_j dA_j (or the normaliser's own row sum) of each row
  const T* d_lse = nullptr;          // backward: the loss gradient at each row's lse, or nothing
  PrefetchList* prefetch = nullptr;  // what the products prefetch on the way, or nothing

  size_t row_begin(size_t r) const { return masked ? static_cast<size_t>(begin[r]) : 0; }
  size_t row_end(size_t r) const { return masked ? static_cast<size_t>(end[r]) : nk; }
  size_t padded_keys() const { return (nk + kRowPadding - 1) / kRowPadding * kRowPadding; }
  // Of the tile's query r: its row, and its position among the keys.
  size_t query_at(size_t r) const {
    return query_index ? static_cast<size_t>(query_index[r]) : q0 + r;
  }
  int64_t position_at(size_t r) const { return static_cast<int64_t>(query_at(r)) + query_offset; }
  size_t key_at(size_t c) const { return key_index ? static_cast<size_t>(key_index[c]) : k0 + c; }
};

}  // namespace fovea::engine
