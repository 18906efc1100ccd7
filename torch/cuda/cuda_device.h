// A CUDA device and the programs it holds, each compiled once: in memory, else from the cache on
// disk, else by NVRTC.
#pragma once

#include "torch/cuda/device.h"

namespace fovea::cuda {

// That of a CUDA tensor. Throws Unsupported where there is no driver.
Device& device_of(const at::Tensor& x);

// Whether a tensor's device has products of groups of warps (texts/wgmma.h). The host is asked for
// what such a device would be given.
bool has_group_products(const at::Tensor& x);

// Whether what is computed of a CUDA tensor is recorded into a graph, and not run.
bool is_captured(const at::Tensor& x);

// Why a program of this device cannot be had; empty: it can. Compiles it where need be, so that what
// `explain_dispatch` says is what happens.
std::string cannot_have(const at::Tensor& x, const Program& program);

}  // namespace fovea::cuda
