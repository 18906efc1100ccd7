// How much work a row is: pairs kept, FLOPs, bytes that must move. tests/bench/rows/work_test.cc
// counts them one by one.
#pragma once

#include <cstdint>
#include <vector>

namespace fovea::bench {

enum class Pass : uint8_t { kForward, kForwardBackward };

// Amounts of one run; a row fills what its roof is measured in and what can be stated.
struct Work {
  double pairs = 0;     // (query, key) pairs kept, over all heads and batches
  double flops = 0;     // multiply-adds count two
  double bytes = 0;     // what must pass through memory: inputs read once, outputs written once, a
                        // graph's rows as gathered
  double elements = 0;  // exponentials or hyperbolic tangents of the definition
};

// Pairs of one head and batch item.
double pairs_dense(int64_t queries, int64_t keys);
double pairs_causal(int64_t length);
double pairs_window(int64_t length, int64_t left, int64_t right);  // -1: unbounded
double pairs_strided(int64_t length, int64_t stride);
double pairs_documents(const std::vector<int64_t>& lengths);  // ragged sequences too

// q.k and the weighted sum of values: width + value_width multiply-adds per pair. Backward computes
// the scores again, then the gradients of weights, values, queries and keys: 3 width + 2
// value_width more.
double dot_flops(Pass pass, double pairs, int64_t width, int64_t value_width);

// Sizes in elements; `element` bytes each.
struct Shape {
  int64_t batch = 1, heads = 8, key_heads = 8;
  int64_t queries = 0, keys = 0;
  int64_t width = 64, value_width = 64;

  double query_size() const { return 1.0 * batch * heads * queries * width; }
  double key_size() const { return 1.0 * batch * key_heads * keys * width; }
  double value_size() const { return 1.0 * batch * key_heads * keys * value_width; }
  double output_size() const { return 1.0 * batch * heads * queries * value_width; }
};
// Inputs and outputs, each once; backward reads the inputs, the output and its gradient again and
// writes three gradients.
double dense_bytes(Pass pass, const Shape& shape, int64_t element);

Work dot_work(Pass pass, const Shape& shape, double pairs_per_head, int64_t element = 4);

}  // namespace fovea::bench
