// Views of the caller's memory, and what the engine says about the machine.
#include "fovea/engine.h"
#include "hwy/targets.h"

namespace fovea::engine {

View View::of(void* data, DType dtype, std::initializer_list<int64_t> size) {
  View view;
  if (size.size() > view.size.size()) {
    throw InvalidArgument("size: " + std::to_string(size.size()) + " dimensions, expected at most " +
                          std::to_string(view.size.size()));
  }
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<int>(size.size());
  int d = 0;
  for (int64_t extent : size) view.size[d++] = extent;
  int64_t stride = 1;
  while (d-- > 0) {
    view.stride[d] = stride;
    stride *= view.size[d];
  }
  return view;
}

const char* simd_target() {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);  // the lowest bit is the best target
}

}  // namespace fovea::engine
