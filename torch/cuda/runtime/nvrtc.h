// NVRTC, which compiles device texts at run time: loaded when first wanted, from where libtorch's
// CUDA wheels put it, or from the system.
#pragma once

#include <string>

namespace fovea::cuda {

// Why there is no NVRTC; empty: there is.
const std::string& nvrtc_missing();

// "13.0"
std::string nvrtc_version();

struct Compiled {
  std::string binary;  // empty: failed
  std::string log;     // what was wrong, or what each kernel takes: registers, spills
};
// `architecture`: "sm_90". Texts are included from the library's own (texts.h).
Compiled compile(const std::string& text, const std::string& architecture);

}  // namespace fovea::cuda
