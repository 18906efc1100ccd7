// The arrays of a problem and of its gradients, one beside the other: query, key, value, then what
// the choices own.
#pragma once

#include <string>
#include <vector>

#include "engine/reference/reference.h"
#include "fovea/engine.h"

namespace fovea {

struct NamedView {
  std::string name;
  engine::View view;
};

namespace arrays_detail {

template <class Choice>
void add_fields(std::vector<NamedView>& all, Choice choice) {
  choice.fields([&](const char* field, auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, engine::View>) {
      if (value) all.push_back({std::string(Choice::kName) + "." + field, value});
    }
  });
}

template <class Owner>
std::vector<NamedView> views_of(const Owner& owner) {
  std::vector<NamedView> all = {{"query", owner.query}, {"key", owner.key}, {"value", owner.value}};
  const auto add = [&](const auto& choice) { add_fields(all, choice); };
  std::visit(add, owner.score.kind);
  for (const auto& modifier : owner.score.modifiers) std::visit(add, modifier);
  std::visit(add, owner.normaliser);
  return all;
}

}  // namespace arrays_detail

inline std::vector<NamedView> arrays_of(const engine::Problem& problem) {
  return arrays_detail::views_of(problem);
}
inline std::vector<NamedView> arrays_of(const engine::Gradients& gradients) {
  return arrays_detail::views_of(gradients);
}

template <class T>
std::vector<const reference::Tensor<T>*> arrays_of(const reference::Backward<T>& gradients) {
  std::vector<const reference::Tensor<T>*> all = {&gradients.query, &gradients.key,
                                                  &gradients.value};
  const auto add = [&](const std::vector<reference::Tensor<T>>& tensors) {
    for (const auto& tensor : tensors) {
      if (tensor) all.push_back(&tensor);
    }
  };
  add(gradients.score);
  for (const auto& modifier : gradients.modifiers) add(modifier);
  add(gradients.normaliser);
  return all;
}

}  // namespace fovea
