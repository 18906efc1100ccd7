// Keys and values in pages (Paged) on libtorch operations: copied out of their pools, and the
// gradients back. Where the engine does not run: on CUDA, and for second derivatives.
#pragma once

#include <vector>

#include "torch/call.h"

namespace fovea::composed {

// The same call with keys and values [B, Hkv, S, E] and key_lengths; differentiable. A call without
// pages stays as it is.
Call out_of_pages(const Call& call);

// Turns the gradients of out_of_pages(call)'s tensors, in the order of composed::backward, into
// those of the call's. Items that share a page add up in a fixed order.
void into_pages(const Call& call, std::vector<at::Tensor>& gradients);

}  // namespace fovea::composed
