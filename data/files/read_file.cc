// Opens files, and nothing else, so that the fuzz targets can replace it by files in memory.
#include "data/files/file.h"
#include "data/files/read.h"

namespace fovea::data {

std::string read_file(const std::string& path) { return unpacked(read_bytes(path), path); }

}  // namespace fovea::data
