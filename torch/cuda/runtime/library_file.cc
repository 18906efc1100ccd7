#include "torch/cuda/runtime/library_file.h"

#include <c10/core/Device.h>
#include <dlfcn.h>

#include <filesystem>

namespace fovea::cuda {

LibraryFile::LibraryFile(const std::vector<std::string>& names) {
  for (const auto& name : names) {
    if ((handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL))) return;
  }
}

void* LibraryFile::symbol(const char* name) const {
  return handle_ ? dlsym(handle_, name) : nullptr;
}

std::vector<std::string> folders_beside_libtorch() {
  namespace fs = std::filesystem;
  Dl_info info{};
  // The address of any libtorch function gives the folder of its library: site-packages/torch/lib.
  const auto function = static_cast<std::string (c10::Device::*)() const>(&c10::Device::str);
  void* address = nullptr;
  static_assert(sizeof function >= sizeof address);
  __builtin_memcpy(&address, &function, sizeof address);
  if (!dladdr(address, &info) || !info.dli_fname) return {};
  std::error_code ignored;
  const fs::path torch = fs::weakly_canonical(info.dli_fname, ignored).parent_path();
  const fs::path packages = torch.parent_path().parent_path();
  std::vector<std::string> folders{torch.string()};
  for (const char* part : {"nvidia/cu13/lib", "nvidia/cu12/lib", "nvidia/cuda_nvrtc/lib"})
    folders.push_back((packages / part).string());
  return folders;
}

}  // namespace fovea::cuda
