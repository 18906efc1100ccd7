// Programs compiled before their first call, into the cache on disk (runtime/cache.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "torch/cuda/program.h"

namespace fovea::cuda {

// The device that is to run them, as the cache tells devices apart.
struct Machine {
  std::string architecture;  // "sm_90a"
  std::string driver;        // "13000": CUDA 13.0
};
// This machine's first device. Throws Unsupported where there is none.
Machine machine_here();

// A combination as one line of text: the choices as in torch/spec.h, then what the operands are,
//
//   dot|alibi:slopes=@;softmax;causal&window:left=512;bfloat16 128
//   SCORE;NORMALISER;STRUCTURE;TYPE WIDTH [VALUE_WIDTH] [step] [dropout] [forward]
//
// @ is an array that the call will give. Numbers of a choice may be any, because they are no part of
// a program. `step`: few queries, as in decoding; `forward`: no gradients.
struct Combination {
  Call call;
  bool forward_only = false;
};
// Throws InvalidArgument.
Combination combination_of(std::string_view line);

// All programs that such a call may ask for. Throws Unsupported where the kernels decline it.
std::vector<Program> programs_of(const Combination& combination, const std::string& architecture);

enum class Kept { kWasThere, kNow };
// Throws Unsupported where the program does not compile, InvalidArgument where it cannot be kept.
Kept keep(const Program& program, const Machine& machine);

}  // namespace fovea::cuda
