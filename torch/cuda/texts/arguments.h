// What a kernel is given: filled by the host, read by the texts, so written in neither's own types.
#pragma once

namespace fovea::cuda {

using Whole = long long;

// Row r of head h of item b starts at data + b * batch + h * head + r * row, in elements.
struct Rows {
  void* data = nullptr;
  Whole batch = 0, head = 0, row = 0;
};

// An array that broadcasts to [B, H, L, S]: stride 0 where it has one element.
struct Broadcast {
  const void* data = nullptr;
  Whole stride[4] = {0, 0, 0, 0};
};

// What one structure, one modifier holds; each text says what it keeps where.
struct Part {
  Whole number[2] = {0, 0};
  Broadcast array[2];
  const int* low[2] = {nullptr, nullptr};  // of an array's tiles: the smallest and largest number
  const int* high[2] = {nullptr, nullptr};
  Whole tiles[2] = {0, 0};  // stride of the batch in those
};
struct Change {
  double number = 0;
  Whole whole = 0;
  Broadcast array;
  const void* scores = nullptr;    // [rows, 2 clip + 1]: what a pair's score gains
  const void* products = nullptr;  // the same for the gradient of a weight
  void* weights = nullptr;         // [rows, 2 clip + 1]: a row's weights by distance, or null
  void* d_scores = nullptr;        // the same for gradients of scores
};

inline constexpr int kMostParts = 8, kMostChanges = 4;

struct Arguments {
  Rows query, key, value, output, d_output, d_query, d_key, d_value;
  int batches = 0, heads = 0, key_heads = 0;
  int queries = 0, keys = 0;           // of the longest sequence
  const int* query_offsets = nullptr;  // of packed sequences, [B + 1]
  const int* key_offsets = nullptr;
  const int* key_lengths = nullptr;   // [B]
  const int* query_offset = nullptr;  // [B], or [1] with a stride of 0
  int query_offset_stride = 0;
  int bottom_right = 0;  // the last query stands at the last key
  // Keys and values in pages, [B, table_width]: a batch of `key` and `value` is then a page.
  const int* table = nullptr;
  int table_width = 0, page_rows = 0, pages = 0;
  Part structure[kMostParts];
  Change modifier[kMostChanges];
  Broadcast weight;      // additive scores: [H, F]; kernels: the bandwidth, [B, H, L]
  Broadcast normaliser;  // [H]: a sink, alpha
  double scale = 1;      // of a score: its factor or slope
  double alpha = 0;
  Whole k = 0;
  unsigned dropout_threshold = 0;
  double dropout_scale = 1;
  unsigned long long seed = 0;
  void* statistics = nullptr;  // [rows, 4]
  void* lse = nullptr;         // [rows], or null
  const void* d_lse = nullptr;
  void* delta = nullptr;          // [rows]: what all gradients of a row's scores share
  void* row_gradients = nullptr;  // [slots, rows]
  Whole rows = 0;
  void* d_weight = nullptr;  // [B, H, tiles of queries, F]: parts of a sum
  void* d_bias = nullptr;    // contiguous, with these strides where it broadcasts
  Whole d_bias_stride[4] = {0, 0, 0, 0};
  int d_bias_rows = 0, d_bias_columns = 0;
  int d_bias_of = 0;        // which modifier
  void* scratch = nullptr;  // scores of rows, for normalisers that look for a threshold
  Whole scratch_row = 0;
  unsigned long long* empty_rows = nullptr;
  // A graph, and the same by key: for each key the rows that see it and which of their edges.
  const int* row_offsets = nullptr;
  const int* columns = nullptr;
  const int* edge_offsets = nullptr;
  const int* edge_rows = nullptr;
  const int* edges = nullptr;
};

}  // namespace fovea::cuda
