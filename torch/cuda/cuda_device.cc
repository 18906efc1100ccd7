#include "torch/cuda/cuda_device.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <map>
#include <memory>
#include <mutex>
#include <string_view>

#include "torch/cuda/runtime/cache.h"
#include "torch/cuda/runtime/driver.h"
#include "torch/cuda/runtime/nvrtc.h"
#include "torch/cuda/texts.h"

namespace fovea::cuda {
namespace {

struct Loaded {
  std::once_flag once;
  void* module = nullptr;
  std::string failed;  // why there is no module
  std::mutex mutex;    // of the kernels
  std::map<std::string, void*, std::less<>> kernels;
};

// libtorch's current stream.
void* stream_on(int index) {
  const c10::impl::VirtualGuardImpl guard(c10::DeviceType::CUDA);
  return guard.getStreamNativeHandle(
      guard.getStream(c10::Device(c10::DeviceType::CUDA, static_cast<c10::DeviceIndex>(index))));
}

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int device) : device_(device), facts_(device_facts(device)) {}

  const std::string& architecture() const { return facts_.architecture; }
  unsigned blocks() const override { return 2 * facts_.multiprocessors; }

  void launch(const Program& program, const char* kernel, unsigned blocks, unsigned chunks,
              const Arguments& arguments) override {
    if (blocks == 0) return;
    Loaded& loaded = load(program);
    if (!loaded.failed.empty()) throw Unsupported(loaded.failed);
    const CurrentContext context(device_);
    void* function = nullptr;
    const unsigned shared = shared_of(program, kernel);
    {
      const std::lock_guard lock(loaded.mutex);
      void*& found = loaded.kernels[kernel];
      if (!found) {
        found = find_kernel(loaded.module, kernel, program.name);
        if (shared > 0) allow_shared(found, shared, program.name);
      }
      function = found;
    }
    launch_kernel(function, blocks, chunks, program.threads, shared, arguments, stream_on(device_),
                  std::string(kernel) + " of " + program.name);
  }

  Loaded& load(const Program& program) {
    Loaded& loaded = find(program.text);
    std::call_once(loaded.once, [&] {
      const std::string key = cache_key(program.text, facts_.architecture, facts_.driver);
      if (const auto binary = cached(key); binary && take(*binary, program, loaded)) return;
      const Compiled compiled = compile(program.text, facts_.architecture);
      if (compiled.binary.empty()) {
        loaded.failed = "CUDA: " + program.name + " was not compiled: " + compiled.log;
        return;
      }
      keep_cached(key, compiled.binary);
      take(compiled.binary, program, loaded);
    });
    return loaded;
  }

 private:
  static unsigned shared_of(const Program& program, std::string_view kernel) {
    const bool has_its_own = program.query_shared_bytes > 0 && kernel == "fovea_gradient_query";
    return has_its_own ? program.query_shared_bytes : program.shared_bytes;
  }
  // Whether the driver loads the binary. A cached one that it refuses is compiled again.
  bool take(const std::string& binary, const Program& program, Loaded& loaded) const {
    try {
      const CurrentContext context(device_);
      loaded.module = load_module(binary, program.name);
      loaded.failed.clear();
    } catch (const Unsupported& error) {
      loaded.failed = error.what();
    }
    return loaded.failed.empty();
  }
  Loaded& find(const std::string& text) {
    const std::lock_guard lock(mutex_);
    auto& loaded = programs_[text];
    if (!loaded) loaded = std::make_unique<Loaded>();
    return *loaded;
  }

  int device_;
  DeviceFacts facts_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Loaded>> programs_;
};

CudaDevice& cuda_device(const at::Tensor& x) {
  static std::mutex mutex;
  static auto& devices = *new std::map<int, std::unique_ptr<CudaDevice>>;
  const std::lock_guard lock(mutex);
  auto& device = devices[x.device().index()];
  if (!device) device = std::make_unique<CudaDevice>(x.device().index());
  return *device;
}

}  // namespace

Device& device_of(const at::Tensor& x) { return cuda_device(x); }

const std::string& architecture_of(const at::Tensor& x) {
  static const std::string newest = "sm_90a";
  return x.is_cuda() ? cuda_device(x).architecture() : newest;
}

bool is_captured(const at::Tensor& x) {
  return x.is_cuda() && is_capturing(stream_on(x.device().index()));
}

std::string cannot_have(const at::Tensor& x, const Program& program) {
  try {
    return cuda_device(x).load(program).failed;
  } catch (const Unsupported& error) {
    return error.what();
  }
}

}  // namespace fovea::cuda
