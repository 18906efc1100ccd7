// What a decoder keeps between steps, so that a step costs one position: keys and values of the
// positions before, and of the memories. Rows are hypotheses; those of one sentence stand side by
// side and read one memory, which is kept once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace fovea::nn {

// Keys and values of one attention, split into heads: [B, H, S, E].
struct HeadsCache {
  at::Tensor key, value;
};

// Keys and values of a row's own positions, with room for more: what is there is not copied when
// others join.
class StepCache {
 public:
  // both [rows, n, 2 width]: the new positions' keys, then their values.
  void append(const at::Tensor& both);
  HeadsCache heads(int64_t heads) const;
  int64_t length() const { return length_; }  // positions there are
  // Row r becomes what was row rows[r] (int64).
  void select(const at::Tensor& rows);

 private:
  at::Tensor store_, spare_;  // [rows, room, 2 width]; the spare takes turns with the store
  int64_t length_ = 0;
};

// Which rows read which memory. A memory's readers are so many queries of it.
class Readers {
 public:
  Readers() = default;
  // One row a memory; lengths int [memories] or undefined.
  Readers(int64_t memories, at::Tensor lengths);

  // Row r reads what row rows[r] read. Returns the memories that still have readers, in the order
  // of the rows, or nothing where they are all, in their order.
  at::Tensor select(const at::Tensor& rows);

  int64_t rows() const { return static_cast<int64_t>(memory_of_.size()); }
  const at::Tensor& lengths() const { return lengths_; }
  at::Tensor gathered(
      const at::Tensor& x) const;  // [rows, n, width] -> [memories, most readers * n, width]
  at::Tensor scattered(const at::Tensor& x) const;  // and back

 private:
  std::vector<int64_t> memory_of_;  // row -> memory
  int64_t memories_ = 0;
  at::Tensor lengths_;
  at::Tensor slots_, rows_;  // row in each slot, slot of each row; undefined where every memory has
                             // as many readers
};

struct DecoderCache {
  std::vector<StepCache> self;     // one a layer
  std::vector<HeadsCache> memory;  // one a layer: [memories, H, S, E]
  Readers readers;

  // Row r continues what was row rows[r] (int64, on the host): sentences at first, then a beam's
  // survivors.
  void select(const at::Tensor& rows);
};

}  // namespace fovea::nn
