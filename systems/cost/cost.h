// Operations of one layer on n items of width d; multiplications and additions are counted
// separately.
#pragma once

namespace fovea::systems::cost {

inline double attention_operations(double n, double d) { return 4 * n * n * d; }  // Q Kᵀ and A V
inline double projection_operations(double n, double d) {
  return 8 * n * d * d;
}  // W^Q, W^K, W^V, W^O: not in the line above
inline double lstm_operations(double n, double d) {
  return 16 * n * d * d;
}  // eight matrices in a step
inline double convolution_operations(double n, double d, double k) { return 2 * k * n * d * d; }
// Attention without its projections costs less than an LSTM below this n.
inline double predicted_crossing(double d) { return 4 * d; }

}  // namespace fovea::systems::cost
