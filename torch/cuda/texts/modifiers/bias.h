// e' = e + bias. array: broadcasts to [B, H, L, S].
#pragma once

namespace fovea::cuda {

struct Bias : PlainModifier {
  static constexpr bool kReads = true, kReadsBefore = true;
  // Whether all keys of a rectangle of pairs have the same number.
  static bool is_of_row(const Change& change, int, int, int, int) {
    return change.array.stride[3] == 0;
  }
  // Whether two neighbours can be read at once.
  static bool reads_next(const Change& change, bool next_is_key) {
    const Broadcast& array = change.array;
    return next_is_key && array.stride[3] == 1 &&
           (reinterpret_cast<unsigned long long>(array.data) % 8 | array.stride[0] % 2 |
            array.stride[1] % 2 | array.stride[2] % 2) == 0;
  }
  static void read_two(const Change& change, const Place& p, T& x, T& y) {
    struct alignas(2 * sizeof(T)) Two {
      T x, y;
    };
    const Two two =
        reinterpret_cast<const Two&>(element<T>(change.array, p.batch, p.head, p.row, p.j));
    x = two.x;
    y = two.y;
  }
  static T read(const Change& change, const Place& p) {
    return element<T>(change.array, p.batch, p.head, p.row, p.j);
  }
  static T value(const Change& change, const Place& p, T e) {
    return e + element<T>(change.array, p.batch, p.head, p.row, p.j);
  }
};

}  // namespace fovea::cuda
