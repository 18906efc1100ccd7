#include "systems/machine.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "train/usage_error.h"

namespace fovea::systems {

torch::Device device_of(const std::string& name) {
  torch::Device device = torch::kCPU;
  try {
    device = torch::Device(name);
  } catch (const c10::Error&) {
    throw UsageError(fmt::format("--device {}: expected cpu, cuda or cuda:N", name));
  }
  if (device.is_cuda() && !torch::cuda::is_available())
    throw UsageError(fmt::format("--device {}: this libtorch sees no CUDA device; use cpu", name));
  return device;
}

void use_threads(int threads) {
  if (threads < 0) throw UsageError(fmt::format("--threads {}: expected at least 1", threads));
  if (threads > 0) at::set_num_threads(threads);
}

}  // namespace fovea::systems
