// How many threads this process may keep busy.
#pragma once

#include <cstddef>
#include <string>

namespace fovea::engine {

// The cores of the process's affinity mask, or fewer if the quotas of its control groups allow
// fewer (a part of a core counts as one); at least 1. Found once.
size_t usable_cores();

// What the control groups allow, by the files under `root` ("" for the system's own): cpu.max
// (version 2) and cpu.cfs_quota_us (version 1) of the process's group and of every group above it.
// 0: no limit, or none that can be read.
size_t quota_cores(const std::string& root);

// The number of threads in a variable such as FOVEA_THREADS; 0 if it is not a number.
size_t threads_asked_for(const char* text);

}  // namespace fovea::engine
