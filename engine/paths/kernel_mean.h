// Nadaraya and Watson's mean for points in a few dimensions with a few values: weights are used in
// the registers in which they are computed, and no tile is stored. For float32, where every query
// sees every key.
#pragma once

#include <cstddef>

#include "engine/call/problem.h"

namespace fovea::engine {

// Most dimensions and values. Points of fewer dimensions are padded with zeros: this costs up to six
// of some twenty instructions, and saves two thirds of the code.
inline constexpr size_t kMeanWidth = 3, kMeanValues = 4;
inline constexpr size_t kMeanQuery = kMeanWidth + 1;  // D q, then b = 1 / h

// Some queries against some keys. Keys lie in groups of one vector each, [group][kMeanWidth, then
// values][lanes], the last one padded.
struct MeanBlock {
  size_t rows = 0, keys = 0, values = 0;
  const float* query = nullptr;  // [rows][kMeanQuery]
  const float* base = nullptr;   // log weights only: a row's weight is exp(log K - base)
  const float* panel = nullptr;
  float* sums = nullptr;  // [rows][1 + values]: gains the sums of weights and of weighted values
  // Backward. A row's record is inverse b^2 times its row term, then its gradient times inverse
  // b^2, then times inverse.
  const float* record = nullptr;
  float* d_query = nullptr;  // [rows][kMeanQuery], gains; the last is the sum of c z
  float* d_panel = nullptr;  // as the panel, gains
};
inline constexpr size_t mean_record(size_t values) { return 1 + 2 * values; }

// Loops of one kernel.
struct MeanLoops {
  size_t lanes;
  void (*forward)(const MeanBlock& block);
  // The same with weights exp(log K - base), for rows whose kernels underflow; null for kernels
  // that have no logarithm.
  void (*forward_log)(const MeanBlock& block);
  void (*nearest)(const MeanBlock& block,
                  float* base);  // base = max(base, log K of the nearest key)
};
struct MeanBackwardLoops {
  void (*by_value)(const MeanBlock& block);
  void (*by_log)(const MeanBlock& block);
};
const MeanLoops& mean_loops(choice::KernelName kernel);
const MeanBackwardLoops& mean_backward_loops(choice::KernelName kernel);

void kernel_mean_backward(const Problem& problem, const Geometry& geometry, const Result& saved,
                          const Gradients& gradients, const Parallel& parallel);

}  // namespace fovea::engine
