// j <= i
#pragma once

namespace fovea::cuda {

struct Causal {
  static constexpr bool kBand = true, kExact = true;
  static void narrow_band(const Part&, int& low, int&) { low = most(low, 0); }
  static Cover cover(const Part&, const Span& s) {
    if (s.key > s.i + s.rows - 1) return Cover::kNone;
    return s.key + s.keys - 1 <= s.i ? Cover::kAll : Cover::kSome;
  }
  static void narrow_keys(const Part&, const Span& s, int&, int& end) {
    end = least(end, s.i + s.rows);
  }
  static void narrow_positions(const Part&, const Span& s, int& first, int&) {
    first = most(first, s.key);
  }
  static bool allows(const Part&, const Place& p) { return p.j <= p.i; }
};

}  // namespace fovea::cuda
