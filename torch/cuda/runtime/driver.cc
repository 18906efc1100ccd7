#include "torch/cuda/runtime/driver.h"

#include <map>
#include <mutex>

#include "fovea/error.h"
#include "torch/cuda/runtime/library_file.h"

namespace fovea::cuda {
namespace {

using Handle = void*;  // of a context, a module, a function, a stream

struct Driver {
  int (*initialise)(unsigned) = nullptr;
  int (*version)(int*) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*device)(int*, int) = nullptr;
  int (*retain)(Handle*, int) = nullptr;
  int (*push)(Handle) = nullptr;
  int (*pop)(Handle*) = nullptr;
  int (*load)(Handle*, const void*) = nullptr;
  int (*function)(Handle*, Handle, const char*) = nullptr;
  int (*set)(Handle, int, int) = nullptr;
  int (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                Handle, void**, void**) = nullptr;
  int (*message)(int, const char**) = nullptr;
  int (*capturing)(Handle, int*) = nullptr;

  Driver() {
    const LibraryFile library({"libcuda.so.1", "libcuda.so"});
    if (!library) throw Unsupported("CUDA: no driver (libcuda.so.1)");
    const bool all =
        library.find("cuInit", initialise) && library.find("cuDriverGetVersion", version) &&
        library.find("cuDeviceGetAttribute", attribute) && library.find("cuDeviceGet", device) &&
        library.find("cuDevicePrimaryCtxRetain", retain) &&
        library.find("cuCtxPushCurrent_v2", push) && library.find("cuCtxPopCurrent_v2", pop) &&
        library.find("cuModuleLoadData", load) && library.find("cuModuleGetFunction", function) &&
        library.find("cuFuncSetAttribute", set) && library.find("cuLaunchKernel", launch) &&
        library.find("cuGetErrorString", message) && library.find("cuStreamIsCapturing", capturing);
    if (!all) throw Unsupported("CUDA: a driver without the functions that are needed");
    check(initialise(0), "cuInit");
  }
  void check(int error, const std::string& what) const {
    if (error == 0) return;
    const char* text = nullptr;
    message(error, &text);
    throw Unsupported("CUDA: " + what + ": " + (text ? text : "error " + std::to_string(error)));
  }
};

const Driver& driver() {
  static const Driver* const loaded = new Driver;
  return *loaded;
}

int handle_of(int device) {
  int handle = 0;
  driver().check(driver().device(&handle, device), "cuDeviceGet");
  return handle;
}

Handle context_of(int device) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<int, Handle>;
  const std::lock_guard lock(mutex);
  Handle& context = contexts[device];
  if (!context)
    driver().check(driver().retain(&context, handle_of(device)), "cuDevicePrimaryCtxRetain");
  return context;
}

}  // namespace

DeviceFacts device_facts(int device) {
  constexpr int kMultiprocessors = 16, kMajor = 75, kMinor = 76;  // CUdevice_attribute
  const auto ask = [&](int attribute) {
    int value = 0;
    driver().check(driver().attribute(&value, attribute, handle_of(device)),
                   "cuDeviceGetAttribute");
    return value;
  };
  int version = 0;
  driver().check(driver().version(&version), "cuDriverGetVersion");
  // Hopper's own instructions (texts/wgmma.h) are in the set of that one architecture.
  const std::string name = "sm_" + std::to_string(ask(kMajor)) + std::to_string(ask(kMinor));
  return {name == "sm_90" ? "sm_90a" : name, std::to_string(version),
          static_cast<unsigned>(ask(kMultiprocessors))};
}

CurrentContext::CurrentContext(int device) {
  driver().check(driver().push(context_of(device)), "cuCtxPushCurrent");
}
CurrentContext::~CurrentContext() {
  Handle popped = nullptr;
  driver().pop(&popped);
}

void* load_module(const std::string& binary, const std::string& name) {
  Handle module = nullptr;
  driver().check(driver().load(&module, binary.data()), "loading " + name);
  return module;
}

void* find_kernel(void* module, const char* kernel, const std::string& name) {
  Handle function = nullptr;
  driver().check(driver().function(&function, module, kernel), std::string(kernel) + " of " + name);
  return function;
}

void allow_shared(void* kernel, unsigned bytes, const std::string& name) {
  constexpr int kMostDynamicShared = 8;  // CUfunction_attribute
  driver().check(driver().set(kernel, kMostDynamicShared, static_cast<int>(bytes)),
                 "shared memory of " + name);
}

void launch_kernel(void* kernel, unsigned blocks, unsigned chunks, unsigned threads,
                   unsigned shared, const Arguments& arguments, void* stream,
                   const std::string& name) {
  void* pointer = const_cast<Arguments*>(&arguments);
  driver().check(
      driver().launch(kernel, blocks, chunks, 1, threads, 1, 1, shared, stream, &pointer, nullptr),
      "launching " + name);
}

bool is_capturing(void* stream) {
  int status = 0;
  driver().check(driver().capturing(stream, &status), "cuStreamIsCapturing");
  return status != 0;
}

}  // namespace fovea::cuda
