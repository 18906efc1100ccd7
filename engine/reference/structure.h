// The structures as lists: N(i), the keys that query i sees, written from the definitions.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/reference/tensor.h"
#include "fovea/engine.h"

namespace fovea::reference {

// One sequence of a batch: which rows of the packed or batched arrays are its queries and its keys.
struct Sequence {
  int64_t batch, queries, keys;
  int64_t first_query, first_key;  // packed arrays: the row where it starts; else 0
  int64_t query_offset = 0;        // the position of its query 0 among its keys
};

class Structure {
 public:
  explicit Structure(const engine::Problem&);
  bool packed() const { return packed_; }
  const std::vector<Sequence>& sequences() const { return sequences_; }
  // N(i) of query i in head h: positions within the sequence, in the order they are met.
  std::vector<int64_t> keys(const Sequence&, int64_t head, int64_t i) const;

 private:
  void place_queries(const engine::Problem&);
  bool allows(const Sequence&, int64_t head, int64_t row, int64_t j) const;
  int64_t length(const Sequence&) const;  // of its keys

  engine::Structure structure_;
  bool packed_ = false;
  std::vector<Sequence> sequences_;
  std::vector<int32_t> lengths_;                 // of keys, for each batch; empty: none given
  std::vector<Tensor<int32_t>> first_, second_;  // the arrays of each structure in `structure_`
  std::vector<int32_t> row_offsets_, columns_;   // of a graph
};

}  // namespace fovea::reference
