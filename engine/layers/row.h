// What a decoder computes for one new position: products of a row with weight matrices, and what
// stands between them. A product with one row reads every weight once, so the weights are packed to
// be read in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fovea/engine.h"

namespace fovea::engine {

// A weight matrix [outputs, inputs] in panels of kPanel outputs; the last one is filled up with
// zeros. A panel holds the weights of its outputs input by input.
class PackedRows {
 public:
  static constexpr size_t kPanel = 64;

  PackedRows() = default;
  PackedRows(size_t outputs, size_t inputs);
  // Copies rows [first, first + rows) from `weight`, [rows, inputs] row by row.
  void put(size_t first, const float* weight, size_t rows);

  size_t outputs() const { return outputs_; }
  size_t inputs() const { return inputs_; }
  size_t panels() const { return (outputs_ + kPanel - 1) / kPanel; }
  size_t padded() const { return panels() * kPanel; }
  const float* panel(size_t p) const { return values_.get() + p * kPanel * inputs_; }

 private:
  struct Free {
    void operator()(float* p) const;
  };
  size_t outputs_ = 0, inputs_ = 0;
  std::unique_ptr<float[], Free> values_;
};

// y [weights.padded()] = W x. A sum is formed in the same order for any number of threads.
void row_product(const PackedRows& weights, const float* x, float* y, const Parallel& parallel);

// out = x / sqrt(mean(x^2) + epsilon) * weight, or with a bias
// (x - mean) / sqrt(variance + epsilon) * weight + bias.
void normalise_row(const float* x, size_t width, const float* weight, const float* bias,
                   float epsilon, float* out);
// gate = gate / (1 + exp(-gate)) * up
void gate_row(float* gate, const float* up, size_t width);

}  // namespace fovea::engine
