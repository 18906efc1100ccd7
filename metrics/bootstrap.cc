#include "metrics/bootstrap.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>

#include "fovea/error.h"

namespace fovea::metrics {
namespace {

// NumPy's SeedSequence for a seed of one word: spreads it over four, then draws eight.
std::array<uint32_t, 8> seed_words(uint32_t seed) {
  std::array<uint32_t, 4> pool{};
  uint32_t constant = 0x43b0d7e5;
  const auto scatter = [&](uint32_t value) {
    value ^= constant;
    constant *= 0x931e8875;
    value *= constant;
    return value ^ (value >> 16);
  };
  for (size_t i = 0; i < 4; ++i) pool[i] = scatter(i == 0 ? seed : 0);
  for (size_t from = 0; from < 4; ++from) {
    for (size_t to = 0; to < 4; ++to) {
      if (from == to) continue;
      const uint32_t mixed = 0xca01f9ddu * pool[to] - 0x4973f715u * scatter(pool[from]);
      pool[to] = mixed ^ (mixed >> 16);
    }
  }
  std::array<uint32_t, 8> words{};
  uint32_t output_constant = 0x8b51f9dd;
  for (size_t i = 0; i < words.size(); ++i) {
    uint32_t value = pool[i % 4] ^ output_constant;
    output_constant *= 0x58f38ded;
    value *= output_constant;
    words[i] = value ^ (value >> 16);
  }
  return words;
}

constexpr unsigned __int128 wide(uint64_t high, uint64_t low) {
  return (static_cast<unsigned __int128>(high) << 64) | low;
}
constexpr unsigned __int128 kMultiplier = wide(2549297995355413924ULL, 4865540595714422341ULL);

}  // namespace

Pcg64::Pcg64(uint32_t seed) {
  const std::array<uint32_t, 8> w = seed_words(seed);
  const auto word64 = [&](size_t i) {
    return (static_cast<uint64_t>(w[2 * i + 1]) << 32) | w[2 * i];
  };
  increment_ = (wide(word64(2), word64(3)) << 1) | 1;
  state_ = increment_ + wide(word64(0), word64(1));
  state_ = state_ * kMultiplier + increment_;
}

uint64_t Pcg64::next64() {
  state_ = state_ * kMultiplier + increment_;
  const uint64_t folded = static_cast<uint64_t>(state_ >> 64) ^ static_cast<uint64_t>(state_);
  const unsigned turn = static_cast<unsigned>(state_ >> 122);
  return (folded >> turn) | (folded << ((64 - turn) & 63));
}

uint32_t Pcg64::next32() {
  if (has_half_) {
    has_half_ = false;
    return half_;
  }
  const uint64_t bits = next64();
  half_ = static_cast<uint32_t>(bits >> 32);
  has_half_ = true;
  return static_cast<uint32_t>(bits);
}

uint32_t Pcg64::below(uint32_t n) {
  uint64_t product = static_cast<uint64_t>(next32()) * n;
  if (static_cast<uint32_t>(product) < n) {
    const uint32_t reject = (0u - n) % n;
    while (static_cast<uint32_t>(product) < reject) product = static_cast<uint64_t>(next32()) * n;
  }
  return static_cast<uint32_t>(product >> 32);
}

Interval bootstrap(size_t sentences, size_t resamples,
                   const std::function<double(const std::vector<uint32_t>&)>& score) {
  if (sentences == 0 || resamples == 0)
    throw InvalidArgument("bootstrap: no sentences or no resamples, expected at least one");
  Pcg64 generator(12345);
  std::vector<uint32_t> chosen(sentences);
  std::vector<double> scores(resamples);
  for (double& s : scores) {
    // NumPy draws nothing for a range of one.
    for (uint32_t& c : chosen)
      c = sentences == 1 ? 0 : generator.below(static_cast<uint32_t>(sentences));
    s = score(chosen);
  }
  for (size_t i = 0; i < resamples; ++i)
    if (!std::isfinite(scores[i]))
      throw InvalidArgument("bootstrap: the score of resample " + std::to_string(i) + " is " +
                            std::to_string(scores[i]) + ", expected a finite number");
  std::sort(scores.begin(), scores.end());
  const size_t low = resamples / 40;
  Interval interval;
  interval.mean =
      std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(resamples);
  interval.half_width = 0.5 * (scores[resamples - low - 1] - scores[low]);
  return interval;
}

}  // namespace fovea::metrics
