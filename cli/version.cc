#include "cli/version.h"

#include <ATen/Context.h>
#include <ATen/Parallel.h>
#include <torch/version.h>

#include <filesystem>
#include <fstream>

#include "fovea/engine.h"
#include "fovea/version.h"

namespace fovea::cli {
namespace {

// The model of the first NVIDIA GPU, as its driver names it. libtorch gives a name only if the CUDA
// toolkit was there when it was compiled.
std::string gpu_model() {
  std::error_code absent;
  for (const auto& gpu : std::filesystem::directory_iterator("/proc/driver/nvidia/gpus", absent)) {
    std::ifstream information(gpu.path() / "information");
    for (std::string line; std::getline(information, line);) {
      if (line.starts_with("Model:")) return line.substr(line.find_first_not_of(" \t", 6));
    }
  }
  return "";
}

std::string gpu() {
  const std::string model = gpu_model();
  if (at::hasCUDA()) {
    const auto count = at::detail::getCUDAHooks().deviceCount();
    if (count > 0) return std::to_string(count) + " x " + (model.empty() ? "CUDA device" : model);
  }
  return model.empty()
             ? "none"
             : "none used (" + model + " is present; this build is for the CPU: preset cuda)";
}

}  // namespace

std::string version() {
  return std::string("fovea    ") + FOVEA_VERSION + "\nlibtorch " + TORCH_VERSION + "\nsimd     " +
         engine::simd_target() + "\nthreads  " + std::to_string(at::get_num_threads()) +
         "\ngpu      " + gpu() + "\n";
}

}  // namespace fovea::cli
