// Where programs run: a CUDA device, or in tests the host.
#pragma once

#include "torch/cuda/program.h"
#include "torch/cuda/texts/arguments.h"

namespace fovea::cuda {

class Device {
 public:
  virtual ~Device() = default;
  // Queues a kernel of a program on the current stream, in blocks of the program's threads.
  virtual void launch(const Program& program, const char* kernel, unsigned blocks, unsigned chunks,
                      const Arguments& arguments) = 0;
  // How many blocks keep it busy.
  virtual unsigned blocks() const = 0;
};

}  // namespace fovea::cuda
