// Graph attention with rank-one scores and softmax: all heads of an edge in one pass. For float32,
// with heads side by side in memory.
//
// Most time is spent on gathering value rows. They are prefetched well ahead, and outputs too large
// for the caches are stored past them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tiles/dropout.h"

namespace fovea::engine {

inline constexpr size_t kRankOneHeads = 256;  // most heads

// Arrays of one call. Heads run within a node: [node][head] and [node][head][width].
struct RankOneGraph {
  size_t heads = 0, width = 0;  // of a head's values
  float negative_slope = 0;
  size_t rows = 0, keys = 0, edges = 0;
  const int32_t *row_offsets = nullptr, *columns = nullptr;
  const float *query = nullptr, *key = nullptr, *value = nullptr;
  // Weights are dropped where `dropout` says so, drawn from random_head of each head; row r draws at
  // position r + query_offset.
  Dropout dropout;
  int64_t query_offset = 0;
  const uint64_t* head_seeds = nullptr;
  // Forward: results; lse may be null. Scratch for the weights of a row: [degree][padded heads].
  float *output = nullptr, *statistics = nullptr, *lse = nullptr;
  bool stream = false;  // the output is larger than the caches
  // Backward. `record`: [row][record_parts()][padded heads] query, maximum, 1 / sum, row term; with
  // dropout also the low and the high half of random_row. `d_edge`: [transposed edge][padded
  // heads].
  const float* d_output = nullptr;
  const float* d_lse = nullptr;
  float *record = nullptr, *d_edge = nullptr;
  const size_t* key_offsets =
      nullptr;  // transposed: rows of each key's edges, and where each edge went
  const int32_t *key_rows = nullptr, *place = nullptr;
  float *d_query = nullptr, *d_key = nullptr, *d_value = nullptr;

  size_t record_parts() const { return dropout ? 6 : 4; }
  size_t padded_heads() const { return (heads + 7) / 8 * 8; }
};

// Rows or keys [from, to). `weights`: scratch of max_degree * padded_heads. *spoiled becomes the
// lowest head * rows + row that sees a score of NaN or +infinity.
struct RankOneKernels {
  void (*forward)(const RankOneGraph& graph, size_t from, size_t to, float* weights, int64_t* empty,
                  size_t* spoiled);
  void (*records)(const RankOneGraph& graph, size_t from, size_t to);
  void (*keys)(const RankOneGraph& graph, size_t from, size_t to);
  void (*queries)(const RankOneGraph& graph, size_t from, size_t to);
};
// For values of this width a head; null where no vector divides it.
const RankOneKernels* rank_one_kernels(size_t width);

}  // namespace fovea::engine
