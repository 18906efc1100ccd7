// Peak extra memory of a run, as the system sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace fovea::bench {

// Bytes by which resident memory rose at its highest during `run`, above what was resident before
// it: everything counts, ours and the peer's alike, whoever allocated it. Where the system cannot
// reset its high-water mark: nothing.
std::optional<int64_t> peak_extra_memory(const std::function<void()>& run);

// Calls `body` in a child process and returns the numbers it returned, or nothing when it failed. A
// child starts without the scratch and the allocator's leftovers of what ran before. Must be called
// before this process has started threads: a child inherits only one.
std::optional<std::vector<double>> in_child(const std::function<std::vector<double>()>& body);

}  // namespace fovea::bench
