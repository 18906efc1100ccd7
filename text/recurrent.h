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

// x [total, input], offsets int32 [items + 1]. In training the state is reset before each word with
// probability `forgetting`, so that later states cannot be relied on to remember a word. Attention
// then gives weight to the state of the word itself.
Walked walk(nn::Recurrent& encoder, const at::Tensor& x, const at::Tensor& offsets,
            double forgetting = 0);

// [rows, 1] like a tensor: 0 with probability `forgetting`, otherwise 1.
at::Tensor remembered(int64_t rows, double forgetting, const at::Tensor& like);

}  // namespace fovea::text
