// j <= i or j < length. number: the length; array: [B], where there, one for each item.
#pragma once

namespace fovea::cuda {

struct Prefix : Unbounded {
  static Whole length(const Part& part, int batch) {
    return part.array[0].data ? element<int>(part.array[0], batch, 0, 0, 0) : part.number[0];
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
  static bool allows(const Part& part, const Place& p) {
    return (p.j <= p.i) | (p.j < length(part, p.batch));
  }
};

}  // namespace fovea::cuda
