// A checked problem with all its sizes, and where each sequence starts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/runtime/scratch.h"
#include "fovea/engine.h"

namespace fovea::engine {

// One head of one batch item: `rows` rows, row r at `data + r * stride` elements of the view's
// type.
struct Rows {
  char* data = nullptr;
  int64_t stride = 0;  // in elements
  size_t rows = 0;
};

// A number for each item of a batch: one for all of them, which takes no memory, or a list.
template <class Number>
class ItemNumbers {
 public:
  void assign(size_t items, Number all) {
    items_ = items;
    all_ = all;
    each_.clear();
  }
  void push_back(Number one) {
    each_.push_back(one);
    items_ = each_.size();
  }
  void set(size_t item, Number one) {
    if (each_.empty()) each_.assign(items_, all_);
    each_[item] = one;
  }
  Number operator[](size_t item) const { return each_.empty() ? all_ : each_[item]; }
  size_t size() const { return items_; }
  bool is_one() const { return each_.empty(); }
  Number largest() const {
    return each_.empty() ? (items_ ? all_ : Number(0))
                         : *std::max_element(each_.begin(), each_.end());
  }

 private:
  size_t items_ = 0;
  Number all_ = 0;
  Vector<Number> each_;
};

struct Geometry {
  DType storage = DType::kFloat32;
  size_t batches = 0, heads = 0, key_heads = 0, group = 1;  // heads = key_heads * group
  size_t query_width = 0, key_width = 0, value_width = 0;
  size_t max_queries = 0, max_keys = 0;  // over the batch
  bool packed = false;                   // (total, H, E): Ragged or Graph
  const Graph* graph = nullptr;          // set when the structure has one
  const Paged* paged = nullptr;          // likewise: keys and values are pools of pages
  size_t page_size = 0;
  // Each batch item's place in the packed tensors (0 and the whole length when not packed).
  ItemNumbers<size_t> query_start, query_count, key_start, key_count;
  ItemNumbers<size_t> key_limit;      // key_count, or less where key_lengths says so
  ItemNumbers<int64_t> query_offset;  // the position of each item's first query among its keys

  // The page of keys [place * page_size, (place + 1) * page_size) of an item.
  size_t page(size_t batch, size_t place) const;

  // The position of query row i of an item among its keys.
  int64_t position(size_t batch, size_t i) const {
    return query_offset[batch] + static_cast<int64_t>(i);
  }
  bool has_offset() const {
    for (size_t b = 0; b < batches; ++b) {
      if (query_offset[b] != 0) return true;
    }
    return false;
  }

  // Rows of one head of a query-sided ([B, H, L, *] or (total, H, *)) or key-sided tensor. A
  // missing trailing dimension (lse) is allowed. Keys in pages have no such rows.
  Rows query_rows(const View& view, size_t batch, size_t head) const;
  Rows key_rows(const View& view, size_t batch, size_t head) const;
};

// Checks all arguments of a call; throws InvalidArgument or Unsupported.
Geometry resolve(const Problem& problem);
void check_result(const Problem& problem, const Geometry& geometry, const Result& result);
void check_gradients(const Problem& problem, const Geometry& geometry, const Gradients& gradients);

// The form in which the normaliser takes its score.
enum class Face : int;
Face face_of(const Problem& problem);

}  // namespace fovea::engine
