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

// Threads wait for each other after every product. With 12.6 million multiply-adds (seq2seq) they
// gain nothing, on two cores or sixteen. With 5 million (hierarchical, small transformers) they
// lose. With 50 million two threads take two thirds of the time of one. Beside other busy programs
// each wait lasts until the last thread has had its turn: up to ten times as long (scripts/loaded).
bool worth_threads(double multiply_adds) {
  constexpr double kSmall = 16e6;
  return multiply_adds >= kSmall;
}

}  // namespace fovea::systems
