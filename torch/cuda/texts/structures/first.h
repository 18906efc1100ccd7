// j < count. number: count.
#pragma once

namespace fovea::cuda {

struct First : Unbounded {
  static constexpr bool kExact = true;
  static Cover cover(const Part& part, const Span& s) {
    if (s.key >= part.number[0]) return Cover::kNone;
    return s.key + s.keys <= part.number[0] ? Cover::kAll : Cover::kSome;
  }
  static bool allows(const Part& part, const Place& p) { return p.j < part.number[0]; }
  static void narrow_keys(const Part& part, const Span&, int&, int& end) {
    if (part.number[0] < end) end = static_cast<int>(part.number[0]);
  }
  static void narrow_positions(const Part& part, const Span& s, int& first, int& end) {
    if (s.key >= part.number[0]) end = least(end, first);
  }
};

}  // namespace fovea::cuda
