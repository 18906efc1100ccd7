// Modifiers one after another. Forward keeps the score before each; backward goes the other way and
// hands what the parameters of each want to `sink` on its way: the gradient at its output (`score`),
// by the distance of the pair (`distance`), or times the derivative by the head's number (`slope`).
#pragma once

namespace fovea::cuda {

template <class... Kinds>
struct Chain;
template <>
struct Chain<> {
  static constexpr int kCount = 0;
  static constexpr bool kAddsValues = false, kReads = false, kSlopes = false, kReadsFirst = false,
                        kLooksBack = false;
  static bool is_of_row(const Change*, int, int, int, int) { return false; }
  static bool reads_next(const Change*, bool) { return false; }
  static void read_two(const Change*, const Place&, T&, T&) {}
  static T read(const Change*, const Place&) { return 0; }
  static T value_with(const Change*, const Place&, T e, T, T*) { return e; }
  static T value(const Change*, const Place&, T e, T*) { return e; }
  template <class Sink>
  static T backward(const Change*, const Place&, const T*, T de, int, Sink&&) {
    return de;
  }
  static T value_product(const Change*, const Place&) { return 0; }
  template <class Sink>
  static void weigh(const Change*, const Place&, T, Sink&&) {}
};
template <class First, class... Rest>
struct Chain<First, Rest...> {
  using Others = Chain<Rest...>;
  static constexpr int kCount = 1 + Others::kCount;
  static constexpr bool kAddsValues = First::kAddsValues || Others::kAddsValues,
                        kReads = First::kReads || Others::kReads,
                        kSlopes = First::kSlope != 0 || Others::kSlopes,
                        kReadsFirst = First::kReadsBefore,
                        kLooksBack = First::kLooksBack || Others::kLooksBack;
  // Where kReadsFirst: what the first modifier reads of a pair, and `value` with that. `is_of_row`:
  // whether the keys of a rectangle have one number in each row; `reads_next`: whether a pair and the
  // next, of the next key, are read at once.
  static bool is_of_row(const Change* changes, int i, int rows, int j, int keys) {
    if constexpr (kReadsFirst) return First::is_of_row(*changes, i, rows, j, keys);
    return false;
  }
  static bool reads_next(const Change* changes, bool next_is_key) {
    if constexpr (kReadsFirst) return First::reads_next(*changes, next_is_key);
    return false;
  }
  static T read(const Change* changes, const Place& place) {
    if constexpr (kReadsFirst) return First::read(*changes, place);
    return 0;
  }
  static void read_two(const Change* changes, const Place& place, T& x, T& y) {
    if constexpr (kReadsFirst) First::read_two(*changes, place, x, y);
  }
  static T value_with(const Change* changes, const Place& place, T e, T read, T* steps) {
    *steps = e;
    return Others::value(changes + 1, place, e + read, steps + 1);
  }
  static T value(const Change* changes, const Place& place, T e, T* steps) {
    *steps = e;
    return Others::value(changes + 1, place, First::value(*changes, place, e), steps + 1);
  }
  template <class Sink>
  static T backward(const Change* changes, const Place& place, const T* steps, T de, int n,
                    Sink&& sink) {
    de = Others::backward(changes + 1, place, steps + 1, de, n + 1, sink);
    sink.score(n, de);
    if constexpr (First::kAddsValues) sink.distance(changes->d_scores, *changes, place, de);
    if constexpr (First::kSlope != 0) sink.slope(n, First::kSlope * First::slope(place) * de);
    return First::backward(*changes, place, *steps, de);
  }
  static T value_product(const Change* changes, const Place& place) {
    return First::value_product(*changes, place) + Others::value_product(changes + 1, place);
  }
  // Hands on the pair's weight where values depend on its distance.
  template <class Sink>
  static void weigh(const Change* changes, const Place& place, T weight, Sink&& sink) {
    if constexpr (First::kAddsValues) sink.distance(changes->weights, *changes, place, weight);
    Others::weigh(changes + 1, place, weight, sink);
  }
};

// What a modifier that only changes scores need not say.
struct PlainModifier {
  static constexpr bool kAddsValues = false;
  static constexpr bool kLooksBack = false;    // the gradient depends on the score
  static constexpr bool kReadsBefore = false;  // adds what can be read before the score is known
  static constexpr bool kReads = false;        // an array's number of the pair, which must be there
  static constexpr T kSlope = 0;  // times `slope`: the derivative by a parameter of the head
  static T slope(const Place&) { return 0; }
  static T value_product(const Change&, const Place&) { return 0; }
  static T backward(const Change&, const Place&, T, T de) { return de; }
};

}  // namespace fovea::cuda
