// Small seeded draws that give the same numbers on every platform (the standard distributions do
// not).
#pragma once

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace fovea::data {

// SplitMix64 (Steele, Lea & Flood 2014): one word of state, so a stream for each (seed, purpose)
// costs nothing.
__extension__ using Wide = unsigned __int128;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  // Uniform on 0 … n - 1, without bias (Lemire 2019); n > 0.
  uint64_t below(uint64_t n) {
    for (;;) {
      const Wide product = static_cast<Wide>(next()) * n;
      if (static_cast<uint64_t>(product) >= (0 - n) % n)
        return static_cast<uint64_t>(product >> 64);
    }
  }
  // Uniform on [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  // Standard normal (Box & Muller 1958).
  double normal() {
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(6.283185307179586 * uniform());
  }
  template <class T>
  void shuffle(std::vector<T>& items) {
    for (size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }
  template <class T>
  const T& choice(const std::vector<T>& items) {
    return items[below(items.size())];
  }

 private:
  uint64_t state_;
};

// A seed for one purpose out of a run's seed: streams of different purposes do not overlap.
inline uint64_t mix(uint64_t seed, uint64_t purpose) {
  Random random(seed ^ (purpose * 0xD1342543DE82EF95u));
  random.next();
  return random.next();
}

}  // namespace fovea::data
