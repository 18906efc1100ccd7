// One call of `attend` with its defaults filled in; every path of the libtorch layer takes one.
#pragma once

#include <type_traits>

#include "fovea/attend.h"

namespace fovea {

struct Call {
  at::Tensor query, key, value;
  Choices choices;
  at::Tensor key_lengths;  // int32 [B] or undefined
  double dropout_p = 0;
  uint64_t seed = 0;
  at::Tensor query_offset = {};  // int32 [1] or [B], or undefined: 0
  bool check_finite = false;
};

// Every field of every choice, in a fixed order: visit(const char* name, field&).
template <class Visit>
void visit_fields(Choices& choices, Visit&& visit) {
  const auto fields = [&](auto& kind) { kind.fields(visit); };
  std::visit(fields, choices.score.kind);
  for (auto& modifier : choices.score.modifiers) std::visit(fields, modifier);
  std::visit(fields, choices.normaliser);
  choice::each_kind(choices.structure, fields);
}

// Every tensor a call's choices hold: visit(const char* name, at::Tensor&), undefined ones left
// out.
template <class Visit>
void visit_arrays(Choices& choices, Visit&& visit) {
  visit_fields(choices, [&](const char* name, auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, at::Tensor>) {
      if (field.defined()) visit(name, field);
    }
  });
}

// The structure among a call's that packs its tensors, or null.
template <class Kind>
const Kind* find_structure(const Structure& structure) {
  for (const auto& kind : structure.all_of) {
    if (const auto* found = std::get_if<Kind>(&kind)) return found;
  }
  return nullptr;
}
inline bool is_packed(const Structure& structure) {
  return find_structure<Ragged>(structure) || find_structure<Graph>(structure);
}

}  // namespace fovea
