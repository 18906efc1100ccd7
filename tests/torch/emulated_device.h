// A device that is the host: programs are compiled by the host's compiler and their threads take
// turns (emulated/cuda.h). For tests of the texts where there is no CUDA device.
#pragma once

#include "torch/cuda/device.h"

namespace fovea::cuda {

class EmulatedDevice final : public Device {
 public:
  void launch(const Program& program, const char* kernel, unsigned blocks, unsigned chunks,
              const Arguments& arguments) override;
  unsigned blocks() const override { return 3; }
};

}  // namespace fovea::cuda
