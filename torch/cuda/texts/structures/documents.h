// Equal ids. array: those of the queries [B, L] and of the keys [B, S]; low, high: those of their
// tiles, or nothing.
#pragma once

namespace fovea::cuda {

struct Documents : Unbounded {
  // Ids of rows first .. first + count, or of some more.
  static void bounds(const Part& part, int side, int batch, int first, int count, int& low,
                     int& high) {
    const Whole tile = batch * part.tiles[side];
    low = part.low[side][tile + first / kTile];
    high = part.high[side][tile + first / kTile];
    for (int n = first / kTile + 1; n <= (first + count - 1) / kTile; ++n) {
      low = least(low, part.low[side][tile + n]);
      high = most(high, part.high[side][tile + n]);
    }
  }
  static Cover cover(const Part& part, const Span& s) {
    if (!part.low[0]) return Cover::kSome;
    int low, high, key_low, key_high;
    bounds(part, 0, s.batch, s.row, s.rows, low, high);
    bounds(part, 1, s.batch, s.key, s.keys, key_low, key_high);
    if (high < key_low || key_high < low) return Cover::kNone;
    return low == high && key_low == key_high && low == key_low ? Cover::kAll : Cover::kSome;
  }
  static bool allows(const Part& part, const Place& p) {
    return element<int>(part.array[0], p.batch, 0, p.row, 0) ==
           element<int>(part.array[1], p.batch, 0, 0, p.j);
  }
};

}  // namespace fovea::cuda
