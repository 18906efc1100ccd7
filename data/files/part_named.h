// The part of a data set that a line of a file names.
#pragma once

#include <string>
#include <string_view>

#include "data/files/file.h"
#include "data/split.h"

namespace fovea::data {

// FileError where it names none.
inline Split part_named(std::string_view name, const std::string& path, size_t line) {
  try {
    return split_from_name(std::string(name));
  } catch (const InvalidArgument& error) {
    throw FileError(path, line, error.what());
  }
}

}  // namespace fovea::data
