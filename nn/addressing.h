// How the heads of an NTM and of a DNC find rows of a memory M [B, N, W]: the equations of
// fovea/nn/ntm.h and fovea/nn/dnc.h, one function each.
#pragma once

#include <ATen/core/Tensor.h>

#include "fovea/nn/dnc.h"

namespace fovea::nn {

// M with rows of length 1; rows near zero stay near zero.
at::Tensor unit_rows(const at::Tensor& memory);
// softmax_i(β k·M_i / |k|), which is softmax_i(β cos(k, M_i)) of unit rows M: key [B, H, W],
// strength [B, H, 1] -> [B, H, N].
at::Tensor content_of_units(const at::Tensor& key, const at::Tensor& strength,
                            const at::Tensor& units);
// The same of any rows.
at::Tensor content_weights(const at::Tensor& key, const at::Tensor& strength,
                           const at::Tensor& memory);
// Σ_i w_i M_i: [B, H, N] -> [B, H, W].
at::Tensor read_rows(const at::Tensor& weights, const at::Tensor& memory);
// M ⊙ Π_h (1 - w_h e_h') + Σ_h w_h a_h': weights [B, H, N], erase and add [B, H, W].
at::Tensor written(const at::Tensor& memory, const at::Tensor& weights, const at::Tensor& erase,
                   const at::Tensor& add);

// w̃(i) = Σ_j w(j) s(i - j): weights [B, H, N], shifts [B, H, 2 m + 1] for s(-m) ... s(m).
at::Tensor circular_shift(const at::Tensor& weights, const at::Tensor& shifts);
// w ∝ w̃^γ, gamma [B, H, 1].
at::Tensor sharpened(const at::Tensor& weights, const at::Tensor& gamma);

// usage and write_weights [B, N], free gates [B, R, 1], read weights [B, R, N]; all of the step
// before but for the gates.
at::Tensor usage_after(const at::Tensor& usage, const at::Tensor& write_weights,
                       const at::Tensor& free_gates, const at::Tensor& read_weights);
// [B, N] -> [B, N]; of rows used alike the lower comes first.
at::Tensor allocation(const at::Tensor& usage);
// links [B, N, N] and precedence [B, N] before the write.
at::Tensor links_after(const at::Tensor& links, const at::Tensor& precedence,
                       const at::Tensor& write_weights);
at::Tensor precedence_after(const at::Tensor& precedence, const at::Tensor& write_weights);

}  // namespace fovea::nn
