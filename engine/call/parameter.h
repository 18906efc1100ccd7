// The small arrays of a stage: one set of numbers for all heads, or one for each head.
#pragma once

#include <cstddef>

#include "engine/runtime/scratch.h"
#include "fovea/engine.h"

namespace fovea::engine {

// A copy in the arithmetic type of an array [inner...] or [H, inner...] (checked before), and the
// way back for its gradient.
template <class T>
class Parameter {
 public:
  Parameter() = default;
  // `inner_rank`: dimensions of one head's set; 0 for a number, given as [1] or [H]. An empty view
  // makes an empty parameter.
  Parameter(const View& view, int inner_rank);

  explicit operator bool() const { return !values_.empty(); }
  size_t size() const { return size_; }  // of one head's set
  const T* of(size_t head) const { return values_.data() + first(head); }

  // The array for the gradient, if it is wanted: of the same shape, in the arithmetic type.
  void set_gradient(const View& view) { gradient_ = view; }
  bool wants_gradient() const { return static_cast<bool>(gradient_); }
  void add_to_gradient(size_t head, const T* sum) const;

 private:
  size_t first(size_t head) const { return per_head_ ? head * size_ : 0; }

  Vector<T> values_;
  size_t size_ = 0;
  bool per_head_ = false;
  View gradient_;
};

}  // namespace fovea::engine
