// How many threads this process may keep busy.
#pragma once

#include <cstddef>
#include <string>

namespace fovea::engine {

// Cores of the process's affinity mask, or as many as its control groups' quotas pay for where that
// is less, a part of a core counted as one; at least 1. Asked once.
size_t usable_cores();

// What the control groups allow, by the files under `root` ("" for the system's own): cpu.max
// (version 2) and cpu.cfs_quota_us (version 1) of the process's group and of every group above it.
// 0: no limit, or none that can be read.
size_t quota_cores(const std::string& root);

// The number of threads a variable such as FOVEA_THREADS asks for; 0 where it does not name one.
size_t threads_asked_for(const char* text);

}  // namespace fovea::engine
