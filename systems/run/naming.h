// Errors about what a RUN holds name the RUN.
#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "train/task.h"

namespace fovea::systems {

struct Run;

// To be called while an exception is handled: throws it again. An InvalidArgument whose words do not
// begin with the RUN's path, and an error of libtorch, get that path before them. A UsageError,
// which is about the user's own words, stays as it is.
[[noreturn]] void rethrow_naming(const std::filesystem::path& run);

// What `call` returns.
template <class Call>
decltype(auto) naming(const std::filesystem::path& run, Call&& call) {
  try {
    return std::forward<Call>(call)();
  } catch (...) {
    rethrow_naming(run);
  }
}

// Reads items for an opened RUN; returns what read_items of its task returns. Errors about generated
// items name the RUN, those about others their file, and where it is gone, what to do.
std::string read_items(const Run& run, const Source& source);

}  // namespace fovea::systems
