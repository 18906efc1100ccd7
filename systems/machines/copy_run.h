// A machine run over sequences that it copies: its answers, its wrong bits, and where its heads
// wrote and read.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <string>

#include "systems/machines/machine.h"
#include "systems/machines/sequences.h"

namespace fovea::systems::machines {

struct CopyRun {
  Encoded encoded;
  torch::Tensor logits;                 // [steps, sequences, outputs]
  torch::Tensor wrong;                  // [sequences]
  torch::Tensor row_written, row_read;  // [steps, sequences], [steps, sequences, heads]: heaviest
};
// Without gradients; `encoded` is on the machine's device.
CopyRun run_copy(Machine& machine, const Encoded& encoded);

// Cross entropy of each bit; zero where no answer is expected.
torch::Tensor bit_losses(const torch::Tensor& logits, const Encoded& e);

// Counts the words of the answer whose row was the heaviest of some read head at the step of the
// word, or one step before (a controller may look ahead). A word's row is the one it was written
// to.
double hits(const CopyRun& ran, int64_t index, const Sequence& sequence);

// The words that the logits of one sequence, [steps, outputs], say.
std::string answer(const torch::Tensor& logits, const Sequence& sequence, Job job, int64_t bits);

}  // namespace fovea::systems::machines
