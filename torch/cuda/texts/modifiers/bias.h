// e' = e + bias. array: broadcasts to [B, H, L, S].
#pragma once

namespace fovea::cuda {

struct Bias : PlainModifier {
  static constexpr bool kReads = true, kReadsBefore = true;
  // Of two pairs, the second of the next key or the next query.
  static void read_pair(const Change& change, const Place& p, bool next_is_key, T& x, T& y) {
    const T* const at = &element<T>(change.array, p.batch, p.head, p.row, p.j);
    x = *at;
    y = at[change.array.stride[next_is_key ? 3 : 2]];
  }
  static T value(const Change& change, const Place& p, T e) {
    return e + element<T>(change.array, p.batch, p.head, p.row, p.j);
  }
};

}  // namespace fovea::cuda
