// A system's generated items as files, to read, to change, to share, or to train on again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "train/types.h"

namespace fovea::systems {

struct GenerateRequest {
  std::string system = {};
  std::vector<std::string> set = {};  // "name=value"
  uint64_t seed = 1;                  // the --data-seed of a training that generates the same items
  std::filesystem::path out = {};
  bool overwrite = false;  // write into a folder that has such files
};

// Writes them and returns which. UsageError if the system reads no files.
Written generate(const GenerateRequest&);

}  // namespace fovea::systems
