// The operator library `fovea`: operators add themselves in files of their own with
// TORCH_LIBRARY_FRAGMENT(fovea, m).
#include <torch/library.h>

#include <string>

#include "fovea/engine.h"
#include "fovea/version.h"
#include "torch/describe.h"

TORCH_LIBRARY(fovea, m) {
  m.def("version", [] { return std::string(FOVEA_VERSION); });
  m.def("describe", [] { return fovea::describe_choices(); });
  m.def("simd_target", [] { return std::string(fovea::engine::simd_target()); });
}
