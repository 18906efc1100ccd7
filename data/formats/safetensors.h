// The safetensors format: a JSON header and bytes, named arrays. The file is treated as hostile.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "data/formats/array.h"

namespace fovea::data {

struct Safetensors {
  std::map<std::string, Array> arrays;
  std::map<std::string, std::string> metadata;
};

// `path` names the file in errors (FileError). Checked: the header's length, its JSON, names given
// twice, types, shapes, and that the arrays cover the data exactly, without overlap or gap, as the
// format demands.
Safetensors parse_safetensors(std::string_view file, const std::string& path);
std::string safetensors_bytes(const Safetensors& content);

}  // namespace fovea::data
