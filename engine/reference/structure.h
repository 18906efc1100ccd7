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
  // The edge of each of them in a graph; nothing without one.
  std::vector<int64_t> edges(const Sequence&, int64_t head, int64_t i) const;
  bool paged() const { return static_cast<bool>(table_); }
  // Keys in pages: the row of a sequence's key j in the pool, counted through all pages.
  int64_t row_in_pool(const Sequence&, int64_t j) const;

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
  Tensor<int32_t> table_;                        // of pages
  int64_t page_size_ = 0;
};

}  // namespace fovea::reference
