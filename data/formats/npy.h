// NumPy's .npy files: one array. The file is treated as hostile.
#pragma once

#include <string>
#include <string_view>

#include "data/formats/array.h"

namespace fovea::data {

// `path` names the file in errors (FileError). Versions 1 to 3; row-major or column-major;
// little-endian numbers and bools.
Array parse_npy(std::string_view file, const std::string& path);
// Version 1. Unsupported for bfloat16, which the format cannot name.
std::string npy_bytes(const Array& array);

}  // namespace fovea::data
