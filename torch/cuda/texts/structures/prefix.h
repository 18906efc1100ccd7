// j <= i or j < length. number: the length; array: [B], where there, one for each item.
#pragma once

namespace fovea::cuda {

struct Prefix : Unbounded {
  static constexpr bool kExact = true;
  // Without a branch, so that pairs share what is read.
  static int length(const Part& part, int batch) {
    const int* const lengths = static_cast<const int*>(part.array[0].data);
    return *(lengths ? lengths + batch * part.array[0].stride[0]
                     : reinterpret_cast<const int*>(part.number));
  }
  static Cover cover(const Part& part, const Span& s) {
    const Whole seen = length(part, s.batch);
    if (s.key + s.keys <= seen || s.key + s.keys - 1 <= s.i) return Cover::kAll;
    return s.key > s.i + s.rows - 1 && s.key >= seen ? Cover::kNone : Cover::kSome;
  }
  static void narrow_keys(const Part& part, const Span& s, int&, int& end) {
    const Whole seen = length(part, s.batch), last = s.i + s.rows;
    if ((seen > last ? seen : last) < end) end = static_cast<int>(seen > last ? seen : last);
  }
  static void narrow_positions(const Part& part, const Span& s, int& first, int&) {
    if (s.key >= length(part, s.batch)) first = most(first, s.key);
  }
  static bool allows(const Part& part, const Place& p) {
    return (p.j <= p.i) | (p.j < length(part, p.batch));
  }
};

}  // namespace fovea::cuda
