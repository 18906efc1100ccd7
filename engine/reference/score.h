// The score e = score(q, k) of one pair, and from its gradient those of q, k and the score's
// arrays.
#pragma once

#include <memory>

#include "engine/reference/tensor.h"
#include "fovea/engine.h"

namespace fovea::reference {

// One query and one key of one head.
template <class T>
struct Pair {
  int64_t batch, head;
  int64_t row;   // of the query, in arrays
  int64_t i, j;  // positions: row + query_offset, and the key's
  const T* q;
  const T* k;
  int64_t edge = -1;  // of a graph
  T* dq = nullptr;    // backward: where the gradients are added
  T* dk = nullptr;
};

// The arrays of a choice, in the order of its fields, and their gradients.
template <class T>
struct Parameters {
  std::vector<Tensor<T>> value, gradient;

  template <class Choice>
  explicit Parameters(Choice choice) {
    choice.fields([&](const char*, auto& field) {
      if constexpr (std::is_same_v<std::decay_t<decltype(field)>, engine::View>) {
        value.emplace_back(field);
        gradient.push_back(Tensor<T>::zeros_like(value.back()));
      }
    });
  }
};

template <class T>
class Score {
 public:
  explicit Score(Parameters<T> parameters) : parameters_(std::move(parameters)) {}
  virtual ~Score() = default;
  virtual T value(const Pair<T>&) const = 0;
  virtual void backward(const Pair<T>&, T de) = 0;
  const Parameters<T>& parameters() const { return parameters_; }

 protected:
  Parameters<T> parameters_;
};

// The form in which a kernel of distance is used: log K, or K itself.
enum class Face { kLog, kValue };

template <class T>
std::unique_ptr<Score<T>> make_score(const engine::Problem&, Face);

// The factor of q.k in a dot score.
double dot_scale(const engine::Dot&, int64_t width);

}  // namespace fovea::reference
