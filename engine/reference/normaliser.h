// Normalisers: the scores of one row, over the keys it sees, become weights; and the gradient back.
#pragma once

#include <memory>
#include <vector>

#include "engine/reference/score.h"

namespace fovea::reference {

template <class T>
struct Row {
  int64_t head = 0;
  T uniform = 0;          // in [0, 1), for a sampled choice
  std::vector<T> e;       // scores of N(i)
  std::vector<T> a;       // weights
  T lse = 0;              // what the lse output holds, where the normaliser has one
  std::vector<T> da, de;  // backward
  T d_lse = 0;
};

template <class T>
class Normaliser {
 public:
  explicit Normaliser(Parameters<T> parameters) : parameters_(std::move(parameters)) {}
  virtual ~Normaliser() = default;
  virtual void forward(Row<T>&) const = 0;  // from e: a, lse
  virtual void backward(Row<T>&) = 0;       // from e, a, da, d_lse: de
  virtual bool has_lse() const { return false; }
  // Whether weights depend on the scores' values. Then a score that is no number (NaN, +infinity)
  // leaves its row no weights that are numbers, whatever the definition would make of it.
  virtual bool looks() const { return true; }
  // A row with nothing to weigh.
  virtual bool empty(const Row<T>& row) const { return row.e.empty(); }
  const Parameters<T>& parameters() const { return parameters_; }
  Parameters<T>& parameters() { return parameters_; }

 protected:
  Parameters<T> parameters_;
};

template <class T>
std::unique_ptr<Normaliser<T>> make_normaliser(const engine::Problem&, Face);

// The form in which the normaliser takes a kernel: K for Unnormalised and KernelRatio (log K where K
// would underflow), log K for the others.
Face face_of(const engine::Problem&);

}  // namespace fovea::reference
