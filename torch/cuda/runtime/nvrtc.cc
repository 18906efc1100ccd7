#include "torch/cuda/runtime/nvrtc.h"

#include <array>
#include <filesystem>
#include <vector>

#include "torch/cuda/runtime/library_file.h"
#include "torch/cuda/texts.h"

namespace fovea::cuda {
namespace {

using NvrtcProgram = void*;

// A second library, which NVRTC opens by its name without a folder. Once loaded, it is found.
void load_builtins(const std::string& folder) {
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc-builtins.so")) const LibraryFile loaded({entry.path().string()});
  }
}

struct Nvrtc {
  int (*version)(int*, int*) = nullptr;
  int (*create)(NvrtcProgram*, const char*, const char*, int, const char* const*,
                const char* const*) = nullptr;
  int (*compile)(NvrtcProgram, int, const char* const*) = nullptr;
  int (*destroy)(NvrtcProgram*) = nullptr;
  int (*binary_size)(NvrtcProgram, size_t*) = nullptr;
  int (*binary)(NvrtcProgram, char*) = nullptr;
  int (*log_size)(NvrtcProgram, size_t*) = nullptr;
  int (*log)(NvrtcProgram, char*) = nullptr;
  std::string missing;

  Nvrtc() {
    std::vector<std::string> names, folders = folders_beside_libtorch();
    folders.emplace_back();  // where the loader looks
    for (const auto& folder : folders) {
      load_builtins(folder);
      for (const char* name : {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}) {
        names.push_back(folder.empty() ? name : folder + "/" + name);
      }
    }
    const LibraryFile library(names);
    if (!library) {
      missing = "no libnvrtc beside libtorch or on the loader's path";
      return;
    }
    const bool all =
        library.find("nvrtcVersion", version) && library.find("nvrtcCreateProgram", create) &&
        library.find("nvrtcCompileProgram", compile) &&
        library.find("nvrtcDestroyProgram", destroy) &&
        library.find("nvrtcGetCUBINSize", binary_size) && library.find("nvrtcGetCUBIN", binary) &&
        library.find("nvrtcGetProgramLogSize", log_size) && library.find("nvrtcGetProgramLog", log);
    if (!all) missing = "a libnvrtc without the functions of CUDA 11.1 and later";
  }
};

const Nvrtc& nvrtc() {
  static const Nvrtc* const loaded = new Nvrtc;
  return *loaded;
}

// Replacements for headers of the standard library that the texts include. NVRTC has none.
constexpr const char* kIntegers =
    "#pragma once\n"
    "typedef int int32_t; typedef unsigned int uint32_t;\n"
    "typedef long long int64_t; typedef unsigned long long uint64_t;\n";
constexpr const char* kMathematics =
    "#pragma once\nnamespace std { inline long lround(double x) { return ::lround(x); } }\n";

}  // namespace

const std::string& nvrtc_missing() { return nvrtc().missing; }

std::string nvrtc_version() {
  int major = 0, minor = 0;
  if (nvrtc().version) nvrtc().version(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

Compiled compile(const std::string& text, const std::string& architecture) {
  if (!nvrtc_missing().empty()) return {{}, nvrtc_missing()};
  const Nvrtc& n = nvrtc();
  std::vector<const char*> names{"cstdint", "cmath"}, texts{kIntegers, kMathematics};
  for (const auto& embedded : embedded_texts()) {
    names.push_back(embedded.name);
    texts.push_back(embedded.text);
  }
  void* program = nullptr;
  if (n.create(&program, text.c_str(), "fovea.cu", static_cast<int>(names.size()), texts.data(),
               names.data()) != 0)
    return {{}, "nvrtcCreateProgram failed"};
  const std::string target = "--gpu-architecture=" + architecture;
  const std::array<const char*, 4> options{"--std=c++17", "-default-device", "--ptxas-options=-v",
                                           target.c_str()};
  const int failed = n.compile(program, static_cast<int>(options.size()), options.data());
  Compiled result;
  size_t size = 0;
  if (n.log_size(program, &size) == 0 && size > 1) {
    result.log.resize(size);
    n.log(program, result.log.data());
    result.log.resize(size - 1);
  }
  if (failed == 0 && n.binary_size(program, &size) == 0) {
    result.binary.resize(size);
    n.binary(program, result.binary.data());
  } else if (result.log.empty()) {
    result.log = "nvrtcCompileProgram: error " + std::to_string(failed);
  }
  n.destroy(&program);
  return result;
}

}  // namespace fovea::cuda
