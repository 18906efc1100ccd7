// Compiled with -O3 -march=native -ffast-math: the compiler vectorises every loop.
#include "bench/plain_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace fovea::bench {

void plain_loop(const PlainCall& call) {
  const size_t width = call.width;
  const float scale = 1 / std::sqrt(static_cast<float>(width));
  thread_local std::vector<float> room;
  room.resize(call.keys);
  float* const weights = room.data();
  for (size_t h = 0; h < call.heads; ++h) {
    const float* key = call.key + h * call.keys * width;
    const float* value = call.value + h * call.keys * width;
    for (size_t i = 0; i < call.queries; ++i) {
      const float* query = call.query + (h * call.queries + i) * width;
      float* out = call.output + (h * call.queries + i) * width;
      const size_t n = std::min(call.keys, call.first_limit + i);
      float largest = std::numeric_limits<float>::lowest(), sum = 0;  // fast math has no infinity
      for (size_t j = 0; j < n; ++j) {
        float dot = 0;
        for (size_t e = 0; e < width; ++e) dot += query[e] * key[j * width + e];
        weights[j] = dot * scale;
        largest = std::max(largest, weights[j]);
      }
      for (size_t j = 0; j < n; ++j) {
        weights[j] = std::exp(weights[j] - largest);
        sum += weights[j];
      }
      for (size_t e = 0; e < width; ++e) out[e] = 0;
      for (size_t j = 0; j < n; ++j) {
        const float weight = weights[j] / sum;
        for (size_t e = 0; e < width; ++e) out[e] += weight * value[j * width + e];
      }
    }
  }
}

}  // namespace fovea::bench
