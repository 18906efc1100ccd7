// Random numbers by position: a function of (seed, batch, head, query, key) and nothing else. So
// backward draws the same numbers as forward, on any thread and in any order. The query is its
// position, row + query_offset, so that decoding with a cache draws what the whole call draws.
//
//   mix(z)          = z ^= z >> 30, z *= 0xbf58476d1ce4e5b9,
//                     z ^= z >> 27, z *= 0x94d049bb133111eb, z ^= z >> 31             (64 bits)
//   row(s, b, h, i) = mix(mix(mix(mix(s + G) ^ b) + G ^ h) + G ^ i),  G = 0x9e3779b97f4a7c15
//   hash(x)         = x ^= x >> 16, x *= 0x7feb352d,
//                     x ^= x >> 15, x *= 0x846ca68b, x ^= x >> 16                     (32 bits)
//   pair(row, j)    = hash(hash(j + low 32 bits of row) ^ high 32 bits of row) >> 8   (24 bits)
//
// A weight is dropped when pair < round(p 2^24). All arithmetic wraps; `+ G ^ h` is (x + G) ^ h.
#pragma once

#include <cmath>
#include <cstdint>

namespace fovea::engine {

constexpr uint64_t mix(uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

// What all rows of a head share: row(s, b, h, i) = mix(random_head(s, b, h) ^ i).
constexpr uint64_t random_head(uint64_t seed, uint64_t batch, uint64_t head) {
  constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
  return mix((mix(mix(seed + kGolden) ^ batch) + kGolden) ^ head) + kGolden;
}

constexpr uint64_t random_row(uint64_t seed, uint64_t batch, uint64_t head, uint64_t query) {
  return mix(random_head(seed, batch, head) ^ query);
}

constexpr uint32_t random_hash(uint32_t x) {
  x = (x ^ x >> 16) * 0x7feb352du;
  x = (x ^ x >> 15) * 0x846ca68bu;
  return x ^ x >> 16;
}

constexpr uint32_t random_pair(uint64_t row, uint32_t key) {
  return random_hash(random_hash(key + static_cast<uint32_t>(row)) ^
                     static_cast<uint32_t>(row >> 32)) >>
         8;
}

// One uniform number in [0, 1) a row, for a choice among all its keys.
constexpr double random_uniform(uint64_t row) {
  return static_cast<double>(mix(row) >> 11) * 0x1p-53;
}

inline uint32_t dropout_threshold(double p) {
  return static_cast<uint32_t>(std::lround(p * 0x1p24));
}

}  // namespace fovea::engine
