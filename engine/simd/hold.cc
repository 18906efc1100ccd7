#include "engine/simd/hold.h"

#include <string>

#include "fovea/engine.h"
#include "hwy/targets.h"

namespace fovea::engine {

// Beside the function that holds it: a library that contains one has the other, and the state of
// both.
const char* simd_target() {
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  return hwy::TargetName(targets & -targets);  // the lowest bit is the best target
}

void hold_simd_target(const char* name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name == nullptr) return;
  std::string known;
  const int64_t present = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = present; rest != 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (std::string(hwy::TargetName(target)) == name)
      return hwy::SetSupportedTargetsForTest(target);
    known += (known.empty() ? "" : ", ") + std::string(hwy::TargetName(target));
  }
  throw InvalidArgument("simd target: '" + std::string(name) + "', expected one of " + known);
}

}  // namespace fovea::engine
