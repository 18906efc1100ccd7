// The machine a run was made on, in words.
#pragma once

#include <cstdint>
#include <string>

namespace fovea::bench {

struct Machine {
  std::string processor;  // the model name the system gives
  int cores = 0;          // that this process may use
  double memory_gb = 0;
  int64_t l1_bytes = 0, l2_bytes = 0,
          l3_bytes = 0;  // of a core; L3 of the socket; 0 where the system does not say
  std::string simd_target;
  std::string bf16;  // "AMX", "dpbf16" or "", and what libtorch is held to where it cannot use it
  std::string libtorch, compiler, system;
  double load = 0;  // one-minute load average when the run began: above the cores' share, figures
                    // are disturbed
};

Machine this_machine();

}  // namespace fovea::bench
