// A recurrent encoder over packed sequences: no step is taken for padding, none is stored, and the backward direction starts at each
// sequence's true end.
#pragma once

#include "fovea/nn/recurrent.h"

namespace fovea::text {

struct Walked {
  at::Tensor states;  // [total, directions * width], packed as the input
  at::Tensor last;    // [items, width]: the forward direction's state at each sequence's last item; zero where it is empty
};

// x [total, input], offsets int32 [items + 1].
Walked walk(nn::Recurrent& encoder, const at::Tensor& x, const at::Tensor& offsets);

}  // namespace fovea::text
