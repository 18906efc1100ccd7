// i - left <= j <= i + right; a negative side is unbounded. number: left, right.
#pragma once

namespace fovea::cuda {

struct Window {
  static Cover cover(const Part& part, const Span& s) {
    const Whole left = part.number[0], right = part.number[1];
    const Whole last_i = s.i + s.rows - 1, last_key = s.key + s.keys - 1;
    if ((left >= 0 && last_key < s.i - left) || (right >= 0 && s.key > last_i + right))
      return Cover::kNone;
    const bool all = (left < 0 || s.key >= last_i - left) && (right < 0 || last_key <= s.i + right);
    return all ? Cover::kAll : Cover::kSome;
  }
  static bool allows(const Part& part, const Place& p) {
    const Whole left = part.number[0], right = part.number[1];
    return (left < 0 || p.i - left <= p.j) && (right < 0 || p.j <= p.i + right);
  }
};

}  // namespace fovea::cuda
