#include "systems/cost/memory.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <string>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace fovea::systems::cost {
namespace {

// A line of /proc/self/status ("VmHWM:  1234 kB") in bytes; NaN if there is none.
double status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string field; status >> field;) {
    double kib = 0;
    if (field == name && status >> kib) return kib * 1024;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// The peak from now on (Linux): "5" sets it to what is held now.
bool forget_peak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5" << std::flush;
  return clear.good();
}

}  // namespace

double peak_bytes(const std::function<void()>& run) {
#ifdef __GLIBC__
  malloc_trim(0);  // what was freed goes back, so that the call cannot use it unseen
#endif
  if (!forget_peak()) return std::numeric_limits<double>::quiet_NaN();
  const double before = status_bytes("VmRSS:");
  run();
  return std::max(0.0, status_bytes("VmHWM:") - before);
}

}  // namespace fovea::systems::cost
