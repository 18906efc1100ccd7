// attend in fused kernels: every score, modifier, normaliser and structure, forward and backward.
#pragma once

#include <string>
#include <vector>

#include "torch/cuda/device.h"

namespace fovea::cuda {

// Why the kernels cannot serve a call; empty: they can. Needs no device.
std::vector<std::string> kernels_decline(const Call& call);
// Why not its gradients; `wanted` as in backward.
std::vector<std::string> gradients_decline(const Call& call, at::IntArrayRef wanted);

// Whether the gradient of a bias is wanted.
bool wants_bias(const Call& call, at::IntArrayRef wanted);

// What the two compile, for the device that the call's tensors are on; `wanted` as in backward.
Program forward_program(const Call& call);
// Why a threshold of rows of 16 bits is not looked for on tensor cores; empty: it is, or rows are wider.
std::string off_tensor_cores(const Call& call);
Program backward_program(const Call& call, at::IntArrayRef wanted);
// The same for another device. Needs none.
Program program_for(const Call& call, Pass pass, const std::string& architecture);

// Places for the results, contiguous or strided but for the last dimension; lse may be undefined.
struct Places {
  at::Tensor output, lse, statistics, empty_rows;
};
void forward(Device& device, const Call& call, const Places& places);

// Gradients of query, key, value and the choices' arrays, in the call's order; undefined where not
// wanted. Those of operands have the layout of `operand_gradient_layout`.
std::vector<at::Tensor> backward(Device& device, const Call& call, const at::Tensor& d_output,
                                 const at::Tensor& d_lse, const at::Tensor& output,
                                 const at::Tensor& statistics, at::IntArrayRef wanted);

}  // namespace fovea::cuda
