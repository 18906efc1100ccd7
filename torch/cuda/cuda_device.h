// A CUDA device and the programs it holds, each compiled once: in memory, else from the cache on
// disk, else by NVRTC.
#pragma once

#include "torch/cuda/device.h"

namespace fovea::cuda {

// That of a CUDA tensor. Throws Unsupported where there is no driver.
Device& device_of(const at::Tensor& x);

// That of a tensor's device, as NVRTC calls it: sm_90a. The host is taken for the newest that the
// texts know.
const std::string& architecture_of(const at::Tensor& x);

// Whether what is computed of a CUDA tensor is recorded into a graph, and not run.
bool is_captured(const at::Tensor& x);

// Why a program of this device cannot be had; empty: it can. Compiles it where need be, so that what
// `explain_dispatch` says is what happens.
std::string cannot_have(const at::Tensor& x, const Program& program);

}  // namespace fovea::cuda
