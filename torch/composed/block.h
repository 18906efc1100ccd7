// A block: some queries of one sequence, or of the same positions in a whole batch, with the keys
// they meet. The composed formula is written on blocks, so that memory is bounded by a block's size
// and not by the problem's.
#pragma once

#include <ATen/ATen.h>

#include "torch/call.h"

namespace fovea::composed {

struct Block {
  // Keys are shared by the queries, [B, H, S, E], or each query has rows of its own, [B, H, l, S,
  // E] (graphs; and where an operand is not finite, so that a masked key can be left out of every
  // product).
  at::Tensor query, key, value;
  at::Tensor i;                    // int64 [l, 1]: rows of the sequence, for arrays
  at::Tensor position;             // int64 [l, 1] or [B, 1, l, 1]: where they stand among the keys
  at::Tensor edge = {};            // int64 [l, S]: a graph's edge of each pair; any where j is -1
  at::Tensor j;                    // int64 [1, S], or [l, S] where queries have keys of their own
  at::Tensor allowed;              // bool, broadcasts to [B, H, l, S]
  int64_t batch = 0, batches = 1;  // which items of the batch
  int64_t first = 0,
          count = 0;  // queries first .. first + count, unless `i` lists chosen ones (first < 0)
  int64_t queries = 0, keys = 0;  // L and S of the sequence
  at::Tensor places;              // where chosen queries stand in the list that chose them
  bool gathered = false;          // a graph's columns: `j` has a row for each query
  at::Tensor lengths;             // int64 [batches, 1, 1, 1]: keys each item has

  bool own_keys() const { return key.dim() == 5; }
  int64_t columns() const { return j.size(1); }
  // The block's rows of an array with a row for each query in dimension `dim`.
  at::Tensor rows(const at::Tensor& array, int64_t dim) const {
    return first < 0 ? array.index_select(dim, i.view(-1)) : array.narrow(dim, first, count);
  }
};

// What an array that broadcasts to [B, H, L, S] holds for a block's pairs, of a shape that
// broadcasts to [B, H, l, S].
at::Tensor at_pairs(const at::Tensor& array, const Block& block);
// The same for one value per head ([1] or [H]) or per query ([B, H, L]).
at::Tensor at_heads(const at::Tensor& array);
at::Tensor at_queries(const at::Tensor& array, const Block& block);

// q . k of every pair; q + k of every pair, [B, H, l, S, E]; a sum over keys with weights [B, H, l,
// S].
at::Tensor inner_products(const at::Tensor& query, const at::Tensor& key);
at::Tensor pair_rows(const at::Tensor& query, const at::Tensor& key, double sign);
at::Tensor aggregate(const at::Tensor& weights, const at::Tensor& value);

// The square root, with derivative 0 at 0.
at::Tensor safe_sqrt(const at::Tensor& x);

// ---- the three choices and the modifiers on a block; each a table with a small function for each
// kind ----

// Which pairs a call's structures and key lengths allow; bool, broadcasts to [B, H, l, S].
at::Tensor allowed_pairs(const Structure& structure, const Block& block);

// The form in which a kernel of distance is used: log K, which most normalisers take, or K.
enum class Face { kLog, kValue };
// A ratio of positive kernels is the softmax of their logarithms, which never underflows to 0 / 0.
Face face_of(const Choices& choices);

// Scores with their modifiers, [B, H, l, S]; entries of masked pairs are arbitrary. The logarithm of
// a kernel that is 0 is -inf.
at::Tensor scores(const Score& score, const Block& block, Face face);
// What relative positions add to the output, or undefined.
at::Tensor relative_values(const Score& score, const Block& block, const at::Tensor& weights);

struct Weighed {
  at::Tensor weights;     // [B, H, l, S], zero where not allowed
  at::Tensor lse = {};    // [B, H, l] or undefined
  at::Tensor empty = {};  // bool [B, H, l]: the query saw no key
  at::Tensor spoiled =
      {};  // bool [B, H, l]: it saw a score of NaN or +infinity; weights and lse NaN
};
Weighed normalise(const Choices& choices, const at::Tensor& scores, const Block& block,
                  uint64_t seed);

}  // namespace fovea::composed
