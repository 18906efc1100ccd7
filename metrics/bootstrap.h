// Confidence by bootstrap (Koehn 2004), drawing the same resamples as sacreBLEU: NumPy's default
// generator, seed 12345.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace fovea::metrics {

// PCG64 (O'Neill 2014) seeded as numpy.random.default_rng(seed) seeds it.
class Pcg64 {
 public:
  explicit Pcg64(uint32_t seed);
  uint32_t next32();
  uint32_t below(uint32_t n);  // uniform in [0, n), Lemire's method

 private:
  uint64_t next64();
  unsigned __int128 state_ = 0, increment_ = 0;
  uint32_t half_ = 0;  // the unused upper half of the last 64 bits
  bool has_half_ = false;
};

struct Interval {
  double mean = 0, half_width = 0;  // of 95 %
};

// `score(indices)` is the metric of the sentences chosen, with repetition.
Interval bootstrap(size_t sentences, size_t resamples,
                   const std::function<double(const std::vector<uint32_t>&)>& score);

}  // namespace fovea::metrics
