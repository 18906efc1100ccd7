// e' = e + scale q.rK_c; values gain rV_c; c = clip(j - i, -clip, clip). Shaw et al. 2018.
//
// Products with the tables are matrix products, made before: scores [rows, 2 clip + 1] holds scale
// q.rK_c and products dO.rV_c. What the tables' gradients and the output need of a row is the sum of
// its weights, or of the gradients of its scores, at each distance c.
// whole: clip.
#pragma once

namespace fovea::cuda {

struct Relative : PlainModifier {
  static constexpr bool kAddsValues = true, kReads = true, kReadsBefore = true;
  static Whole at(const Change& change, const Place& p) {
    const int clip = static_cast<int>(change.whole);
    return p.row_index * (2 * clip + 1) + least(most(p.j - p.i, -clip), clip) + clip;
  }
  // Beyond the clip all keys of a row have the same number.
  static bool is_of_row(const Change& change, int i, int rows, int j, int keys) {
    const int clip = static_cast<int>(change.whole);
    return j + keys - 1 - i <= -clip || j - (i + rows - 1) >= clip;
  }
  static bool reads_next(const Change&, bool) { return false; }
  static void read_two(const Change&, const Place&, T&, T&) {}
  static T read(const Change& change, const Place& p) {
    return change.scores ? static_cast<const T*>(change.scores)[at(change, p)] : T(0);
  }
  static T value(const Change& change, const Place& p, T e) {
    return change.scores ? e + static_cast<const T*>(change.scores)[at(change, p)] : e;
  }
  static T value_product(const Change& change, const Place& p) {
    return change.products ? static_cast<const T*>(change.products)[at(change, p)] : T(0);
  }
};

}  // namespace fovea::cuda
