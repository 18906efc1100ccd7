// Attention as one writes it in an afternoon: a yardstick for small calls, where whatever a library
// does besides is most of the time.
#pragma once

#include <cstddef>

namespace fovea::bench {

struct PlainCall {
  const float *query, *key, *value;  // [heads, queries, width], [heads, keys, width]
  float* output;
  size_t heads, queries, keys, width;
  // Query i sees the keys up to first_limit + i, or all of them where there are fewer.
  size_t first_limit;
};

void plain_loop(const PlainCall& call);

}  // namespace fovea::bench
