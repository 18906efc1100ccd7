// The loops behind the roofs, one set for each SIMD target.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::bench {

struct RoofKernels {
  size_t lanes;  // float32 in a vector
  // `rounds` times kFmaChains multiply-adds of a vector, none waiting for another.
  float (*fma)(size_t rounds);
  // Sum of exp (tanh) over n values, `rounds` times; n values fit L1.
  float (*exponential)(const float* x, size_t n, size_t rounds);
  float (*tanh)(const float* x, size_t n, size_t rounds);
  // a = b + 3 c, with ordinary stores or past the caches.
  void (*triad)(float* a, const float* b, const float* c, size_t n);
  void (*triad_streamed)(float* a, const float* b, const float* c, size_t n);
  // Sum of the rows `index[0 .. n)`, each of `width` floats, prefetched.
  float (*gather)(const float* rows, size_t width, const int32_t* index, size_t n);
};

// Enough independent chains for two units of latency four or five.
inline constexpr size_t kFmaChains = 12;

const RoofKernels& roof_kernels();

// Products of bfloat16 pairs added in float32, by the fastest instruction present: `flops` counts
// those of one call.
struct Bf16Unit {
  const char* name;  // "AMX", "dpbf16", or "" when the machine has neither
  double flops;
  void (*run)();
};
const Bf16Unit& bf16_unit();

// Before libtorch multiplies anything: where oneDNN's AMX kernels cannot run on this machine, holds
// it to those without; libtorch then multiplies bfloat16 through MKL, which knows the tiles by
// itself. Says whether it did.
bool hold_libtorch_to_what_runs();

}  // namespace fovea::bench
