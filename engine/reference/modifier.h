// Modifiers of a score: e -> e', and the gradient back through it.
#pragma once

#include <memory>

#include "engine/reference/score.h"

namespace fovea::reference {

template <class T>
class Modifier {
 public:
  explicit Modifier(Parameters<T> parameters) : parameters_(std::move(parameters)) {}
  virtual ~Modifier() = default;
  virtual T value(const Pair<T>&, T e) const = 0;
  // From the gradient at e' the one at e; adds to the gradients of the modifier's arrays and, for
  // relative positions, to dq.
  virtual T backward(const Pair<T>&, T e, T de) = 0;
  // What is added to value row j for query i, and the place for its gradient; null for nothing.
  virtual const T* value_offset(const Pair<T>&) const { return nullptr; }
  virtual T* value_offset_gradient(const Pair<T>&) { return nullptr; }
  const Parameters<T>& parameters() const { return parameters_; }

 protected:
  Parameters<T> parameters_;
};

template <class T>
std::vector<std::unique_ptr<Modifier<T>>> make_modifiers(const engine::Problem&);

}  // namespace fovea::reference
