// j <= i
#pragma once

namespace fovea::cuda {

struct Causal {
  static Cover cover(const Part&, const Span& s) {
    if (s.key > s.i + s.rows - 1) return Cover::kNone;
    return s.key + s.keys - 1 <= s.i ? Cover::kAll : Cover::kSome;
  }
  static bool allows(const Part&, const Place& p) { return p.j <= p.i; }
};

}  // namespace fovea::cuda
