// A call cut into blocks of queries.
#pragma once

#include <functional>

#include "torch/composed/block.h"

namespace fovea::composed {

// A call whose operands and parameters are in the type of arithmetic: float32 for half precision
// too.
Call in_arithmetic(const Call& call);

// Every query once, in order: sequences of a ragged batch one after another, a batch's items side
// by side.
void for_each_block(const Call& call, const std::function<void(const Block&)>& body);
// The same for chosen query positions (int64 [R], within each sequence) only; positions past a
// sequence's end are left out.
void for_each_block_of(const Call& call, const at::Tensor& rows,
                       const std::function<void(const Block&)>& body);

Weighed weigh(const Call& call, const Block& block);

struct BlockOutputs {
  at::Tensor output, lse;  // [B, H, l, Ev], [B, H, l] or undefined
  at::Tensor empty;        // bool [B, H, l]
  at::Tensor spoiled;      // bool [B, H, l] or undefined: none
};
BlockOutputs attend_block(const Call& call, const Block& block);

}  // namespace fovea::composed
