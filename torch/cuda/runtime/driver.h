// CUDA's driver: loads what NVRTC compiled and launches it.
#pragma once

#include <string>

#include "torch/cuda/texts/arguments.h"

namespace fovea::cuda {

struct DeviceFacts {
  std::string architecture;  // "sm_90"
  std::string driver;        // version
  unsigned multiprocessors = 0;
};

// Throws Unsupported where there is no driver.
DeviceFacts device_facts(int device);

// Makes the device's primary context, libtorch's, current while it lives.
class CurrentContext {
 public:
  explicit CurrentContext(int device);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
};

// In the current context. `name` for messages.
void* load_module(const std::string& binary, const std::string& name);
void* find_kernel(void* module, const char* kernel, const std::string& name);
// Allows blocks this much memory beyond what the kernel declares.
void allow_shared(void* kernel, unsigned bytes, const std::string& name);
void launch_kernel(void* kernel, unsigned blocks, unsigned chunks, unsigned threads,
                   unsigned shared, const Arguments& arguments, void* stream,
                   const std::string& name);

// Whether what is launched on a stream is recorded into a graph.
bool is_capturing(void* stream);

}  // namespace fovea::cuda
