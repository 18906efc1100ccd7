// A recurrent encoder over packed sequences: no step is taken for padding, none is stored, and the
// backward direction starts at each sequence's true end.
#pragma once

#include "fovea/nn/recurrent.h"

namespace fovea::text {

struct Walked {
  at::Tensor states;  // [total, directions * width], packed as the input
  at::Tensor last;    // [items, width]: the forward direction's state at each sequence's last item;
                      // zero where it is empty
};

// x [total, input], offsets int32 [items + 1]. While the encoder trains, a sequence is read afresh
// from any word on with probability `forgetting`: what was read before is gone. Memory then has a
// price, and a weight goes to the state where a thing was read, not to a later one that remembers
// it.
Walked walk(nn::Recurrent& encoder, const at::Tensor& x, const at::Tensor& offsets,
            double forgetting = 0);

// [rows, 1] like a tensor: 0 with probability `forgetting`, otherwise 1.
at::Tensor remembered(int64_t rows, double forgetting, const at::Tensor& like);

}  // namespace fovea::text
