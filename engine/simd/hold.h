// Holding the engine to one SIMD target, for tests and benchmarks.
#pragma once

namespace fovea::engine {

// From now on the engine runs on `name` ("AVX2", ...); nullptr lets it choose again. Do not call it
// while a call is running. Throws InvalidArgument with the available names if the processor or the
// build has no such target.
void hold_simd_target(const char* name);

// The same for the unit of bfloat16 products: "AMX", "dpbf16", or "none" for float32 arithmetic.
void hold_bf16_unit(const char* name);

}  // namespace fovea::engine
