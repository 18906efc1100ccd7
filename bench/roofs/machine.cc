#include "bench/roofs/machine.h"

#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "bench/roofs/kernels.h"
#include "engine/runtime/cores.h"
#include "fovea/engine.h"

namespace fovea::bench {
namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown";
}

}  // namespace

Machine this_machine() {
  Machine machine;
  machine.processor = processor_name();
  machine.cores = static_cast<int>(engine::usable_cores());
  machine.memory_gb = 1e-9 * static_cast<double>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<double>(sysconf(_SC_PAGESIZE));
#ifdef _SC_LEVEL1_DCACHE_SIZE
  machine.l1_bytes = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  machine.l2_bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  machine.l3_bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
  machine.simd_target = engine::simd_target();
  machine.bf16 = bf16_unit().name;
  if (hold_libtorch_to_what_runs())
    machine.bf16 +=
        " (through MKL only for libtorch: oneDNN needs the list of tile palettes, which is hidden "
        "here)";
  machine.libtorch = TORCH_VERSION;
  machine.compiler = "g++ " __VERSION__;
  utsname names;
  if (uname(&names) == 0)
    machine.system = std::string(names.sysname) + " " + names.release + " " + names.machine;
  double load[1] = {0};
  if (getloadavg(load, 1) == 1) machine.load = load[0];
  return machine;
}

}  // namespace fovea::bench
