// What a decoder keeps between steps, so that a step computes one position only: keys and values of
// earlier positions, and of the memories (encoded sources). Rows are hypotheses. Those of one
// sentence follow each other and read the same memory, which is stored once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace fovea::nn {

// Keys and values of one attention, split into heads: [B, H, S, E].
struct HeadsCache {
  at::Tensor key, value;
};

// Keys and values of a row's own positions, with spare capacity: appending does not copy those
// already there.
class StepCache {
 public:
  // both [rows, n, 2 width]: the new positions' keys, then their values.
  void append(const at::Tensor& both);
  HeadsCache heads(int64_t heads) const;
  at::Tensor rows() const;                    // all that was appended: [rows, length, 2 width]
  int64_t length() const { return length_; }  // number of positions
  // Row r becomes what was row rows[r] (int64).
  void select(const at::Tensor& rows);

 private:
  at::Tensor store_, spare_;  // [rows, capacity, 2 width]; select swaps the two
  int64_t length_ = 0;
};

// Which rows read which memory. The rows that read a memory become queries of one attention call.
class Readers {
 public:
  Readers() = default;
  // One row for each memory; lengths int [memories] or undefined.
  Readers(int64_t memories, at::Tensor lengths);

  // Row r reads what row rows[r] read. Returns the memories that still have readers, in the order
  // of the rows; an undefined tensor if these are all memories in their order.
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
  at::Tensor slots_, rows_;  // row in each slot, slot of each row; undefined if all memories have
                             // the same number of readers
};

struct DecoderCache {
  std::vector<StepCache> self;     // one for each layer
  std::vector<HeadsCache> memory;  // one for each layer: [memories, H, S, E]
  Readers readers;

  // Row r becomes what was row rows[r] (int64, on the host). At first rows are sentences, later
  // hypotheses that stayed in the beam.
  void select(const at::Tensor& rows);
};

}  // namespace fovea::nn
