#include "engine/call/parameter.h"

#include <array>

#include "engine/call/view.h"

namespace fovea::engine {
namespace {

// Place of the element `index`, counted row by row.
std::array<int64_t, 4> place(const View& view, size_t index) {
  std::array<int64_t, 4> at{};
  for (int d = view.rank - 1; d >= 0; --d) {
    at[d] = static_cast<int64_t>(index) % view.size[d];
    index /= static_cast<size_t>(view.size[d]);
  }
  return at;
}

}  // namespace

template <class T>
Parameter<T>::Parameter(const View& view, int inner_rank) {
  if (!view) return;
  per_head_ = view.rank > inner_rank && view.size[0] > 1;
  size_t count = 1;
  for (int d = 0; d < view.rank; ++d) count *= static_cast<size_t>(view.size[d]);
  size_ = per_head_ ? count / static_cast<size_t>(view.size[0]) : count;
  values_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const auto at = place(view, i);
    values_[i] = read<T>(view, at[0], at[1], at[2], at[3]);
  }
}

template <class T>
void Parameter<T>::add_to_gradient(size_t head, const T* sum) const {
  for (size_t i = 0; i < size_; ++i) {
    const auto at = place(gradient_, first(head) + i);
    element<T>(gradient_, at[0], at[1], at[2], at[3]) += sum[i];
  }
}

template class Parameter<float>;
template class Parameter<double>;

}  // namespace fovea::engine
