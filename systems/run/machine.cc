#include "systems/run/machine.h"

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

int all_threads() {
  static const int all = at::get_num_threads();
  return all;
}

void use_threads(int threads) {
  if (threads < 0) throw UsageError(fmt::format("--threads {}: expected at least 1", threads));
  const int wanted = threads > 0 ? threads : all_threads();
  if (wanted != at::get_num_threads()) at::set_num_threads(wanted);
}

}  // namespace fovea::systems
