// The text of a combination: which stages a call chose, and its constants. Types and widths are in
// it, lengths and parameters are not, so that a new shape is no new program.
#pragma once

#include <optional>
#include <string>

#include "torch/call.h"

namespace fovea::cuda {

struct Program {
  std::string name;  // for messages: "dot+alibi, softmax, causal & window, bf16, 64, 64"
  std::string text;
  bool on_graph = false;
  bool has_threshold = false;  // needs scratch for rows of scores, or lists
  bool on_tensor_cores = false;
  bool has_lists = false;      // of what may have weight (drivers/mma/mma_lists.h)
  bool decodes = false;        // few queries, and keys in parts
  bool on_points = false;      // few dimensions and values, and the other side in parts
  bool on_panels = false;      // dot products of float32 or float64
  int scratch_arrays = 1;      // numbers of a pair, where rows of scores are kept
  int resident = 2;            // blocks of a multiprocessor that keep some
  bool is_parted = false;      // on tiles, and keys in parts
  int merged_rows = 0;         // parts of forward: rows that a block of the second kernel adds up
  int tile = 64, chunk = 128;  // drivers/tiles/tile.h
  int lanes = 32;              // of a graph's row
  int own = 64, key_own = 64;  // queries, keys of a block, where it is on tiles
  unsigned threads = 256;
  unsigned shared_bytes = 0;        // beyond what the text declares
  unsigned query_shared_bytes = 0;  // of the query's gradient, where that is less
  int64_t features = 0;             // of a score: 0 where it looks at no rows
  int64_t feature_chunk = 128;
};

// Which kernels a program has: the forward one, or those of gradients, with or without a bias's.
enum class Pass { kForward, kBackward, kBackwardWithBias };

// Of keys and values, in rows or in pages: their heads, and the most keys of a sequence.
int64_t key_heads(const Call& call);
int64_t key_count(const Call& call);

// `operand` is the type of query and key, after a score is brought to a simpler one (reduced.h),
// `width` theirs. `architecture`: of the device that is to run it.
Program program_of(const Call& call, at::ScalarType operand, int64_t width, Pass pass,
                   const std::string& architecture);

}  // namespace fovea::cuda
