// A call as the arguments of its kernels.
#pragma once

#include <vector>

#include "torch/cuda/device.h"
#include "torch/cuda/program.h"
#include "torch/cuda/reduced.h"
#include "torch/cuda/texts/arguments.h"

namespace fovea::cuda {

struct Filled {
  Arguments arguments;
  std::vector<at::Tensor> held;  // tensors that the arguments point to, kept alive here
};

// Everything but the places of results.
Filled fill(const Call& call, const Reduced& reduced, const Program& program);

Rows rows_of(const at::Tensor& x);

// Blocks, and chunks of columns, as a grid has them.
unsigned grid(int64_t n);
int64_t chunks_of(int64_t width, int64_t chunk);
// Rows of a graph that a block has at once.
int64_t rows_of_block(const Program& program);

// In how many parts blocks share out the other side's `rows` (drivers/points/points.h).
int64_t parts_of(const Device& device, int64_t blocks, int64_t rows);

// The stream that work on a tensor's device goes to, as a number; 0 on the host.
int64_t stream_of(const at::Tensor& x);

// How many queries there are in all, over all heads.
int64_t row_count(const at::Tensor& query);

}  // namespace fovea::cuda
