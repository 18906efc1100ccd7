// i - left <= j <= i + right; a negative side is unbounded. number: left, right.
#pragma once

namespace fovea::cuda {

struct Window {
  static constexpr bool kBand = true, kExact = true;
  static void narrow_band(const Part& part, int& low, int& high) {
    low = most(low, -side(part, 1));
    high = least(high, side(part, 0));
  }
  static Cover cover(const Part& part, const Span& s) {
    const Whole left = part.number[0], right = part.number[1];
    const Whole last_i = s.i + s.rows - 1, last_key = s.key + s.keys - 1;
    if ((left >= 0 && last_key < s.i - left) || (right >= 0 && s.key > last_i + right))
      return Cover::kNone;
    const bool all = (left < 0 || s.key >= last_i - left) && (right < 0 || last_key <= s.i + right);
    return all ? Cover::kAll : Cover::kSome;
  }
  static bool allows(const Part& part, const Place& p) {
    const int left = side(part, 0), right = side(part, 1), distance = p.i - p.j;
    return distance <= left && -distance <= right;
  }
  // Positions lie less than this apart.
  static int side(const Part& part, int n) {
    constexpr Whole kFar = 0x7fffffff;
    const Whole number = part.number[n];
    return static_cast<int>(number < 0 || number > kFar ? kFar : number);
  }
  static void narrow_keys(const Part& part, const Span& s, int& first, int& end) {
    const Whole left = part.number[0], right = part.number[1];
    if (left >= 0 && s.i - left > first) first = static_cast<int>(s.i - left);
    if (right >= 0 && s.i + s.rows + right < end) end = static_cast<int>(s.i + s.rows + right);
  }
  static void narrow_positions(const Part& part, const Span& s, int& first, int& end) {
    const Whole left = part.number[0], right = part.number[1];
    if (right >= 0 && s.key - right > first) first = static_cast<int>(s.key - right);
    if (left >= 0 && s.key + s.keys + left < end) end = static_cast<int>(s.key + s.keys + left);
  }
};

}  // namespace fovea::cuda
