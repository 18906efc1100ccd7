// A pair that any of some lists of structures allows, a pair that a list does not: a | b, ~a. Their
// parts are those of their lists, one after another.
#pragma once

#include "torch/cuda/texts/structures/all.h"

namespace fovea::cuda {

template <class... Lists>
struct AnyOf : Unbounded {
  static Cover cover(const Part& part, const Span& span) {
    const Part* parts = &part;
    Cover most = Cover::kNone;
    ((most = wider(most, Lists::cover(parts, span)), parts += kParts<Lists>), ...);
    return most;
  }
  static bool allows(const Part& part, const Place& place) {
    const Part* parts = &part;
    bool any = false;
    ((any = any || Lists::allows(parts, place), parts += kParts<Lists>), ...);
    return any;
  }
  static void narrow_keys(const Part& part, const Span& span, int& first, int& end) {
    const Part* parts = &part;
    int low = end, high = first;
    ((widen_to([&](int& from, int& to) { Lists::narrow_keys(parts, span, from, to); }, first, end,
               low, high),
      parts += kParts<Lists>),
     ...);
    first = low;
    end = high;
  }
  static void narrow_positions(const Part& part, const Span& span, int& first, int& end) {
    const Part* parts = &part;
    int low = end, high = first;
    ((widen_to([&](int& from, int& to) { Lists::narrow_positions(parts, span, from, to); }, first,
               end, low, high),
      parts += kParts<Lists>),
     ...);
    first = low;
    end = high;
  }

 private:
  static Cover wider(Cover x, Cover y) {
    if (x == Cover::kAll || y == Cover::kAll) return Cover::kAll;
    return x == Cover::kSome ? x : y;
  }
  // low .. high to hold one list's range of first .. end, where it has one.
  template <class Narrow>
  static void widen_to(Narrow narrow, int first, int end, int& low, int& high) {
    narrow(first, end);
    if (first >= end) return;
    low = least(low, first);
    high = most(high, end);
  }
};

template <class List>
struct Not : Unbounded {
  static Cover cover(const Part& part, const Span& span) {
    const Cover seen = List::cover(&part, span);
    if (seen == Cover::kSome) return seen;
    return seen == Cover::kAll ? Cover::kNone : Cover::kAll;
  }
  static bool allows(const Part& part, const Place& place) { return !List::allows(&part, place); }
};

template <class... Lists>
constexpr int kParts<AnyOf<Lists...>> = (kParts<Lists> + ... + 0);
template <class List>
constexpr int kParts<Not<List>> = kParts<List>;

}  // namespace fovea::cuda
