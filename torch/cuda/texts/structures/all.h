// Several structures that must all allow a pair.
#pragma once

namespace fovea::cuda {

template <class... Kinds>
struct All;
template <>
struct All<> {
  static Cover cover(const Part*, const Span&) { return Cover::kAll; }
  static bool allows(const Part*, const Place&) { return true; }
};
template <class First, class... Rest>
struct All<First, Rest...> {
  static Cover cover(const Part* parts, const Span& span) {
    const Cover first = First::cover(*parts, span);
    if (first == Cover::kNone) return first;
    const Cover rest = All<Rest...>::cover(parts + 1, span);
    return rest == Cover::kAll ? first : rest;
  }
  static bool allows(const Part* parts, const Place& place) {
    return First::allows(*parts, place) && All<Rest...>::allows(parts + 1, place);
  }
};

}  // namespace fovea::cuda
