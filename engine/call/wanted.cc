#include "engine/call/wanted.h"

#include <type_traits>
#include <variant>

namespace fovea::engine {
namespace {

template <class Variant>
Variant without_places(Variant choice) {
  const auto clear = [](const char*, auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, View>) field = {};
  };
  std::visit([&](auto& kind) { kind.fields(clear); }, choice);
  return choice;
}

template <class Variant>
void complete(const Variant& choice, Variant* wanted) {
  if (wanted->index() != choice.index()) *wanted = without_places(choice);
}

bool has_every_choice(const Problem& p, const Gradients& g) {
  if (g.score.kind.index() != p.score.kind.index() ||
      g.normaliser.index() != p.normaliser.index() ||
      g.score.modifiers.size() != p.score.modifiers.size())
    return false;
  for (size_t m = 0; m < p.score.modifiers.size(); ++m) {
    if (g.score.modifiers[m].index() != p.score.modifiers[m].index()) return false;
  }
  return true;
}

}  // namespace

std::optional<Gradients> with_every_choice(const Problem& problem, const Gradients& gradients) {
  if (has_every_choice(problem, gradients)) return std::nullopt;
  Gradients all = gradients;
  complete(problem.score.kind, &all.score.kind);
  complete(problem.normaliser, &all.normaliser);
  const auto& modifiers = problem.score.modifiers;
  for (size_t m = 0; m < modifiers.size(); ++m) {
    if (m == all.score.modifiers.size())
      all.score.modifiers.push_back(without_places(modifiers[m]));
    else
      complete(modifiers[m], &all.score.modifiers[m]);
  }
  return all;
}

}  // namespace fovea::engine
