// The door of files alone, so that the fuzz targets can put memory in its place.
#include "data/files/file.h"
#include "data/files/read.h"

namespace fovea::data {

std::string read_file(const std::string& path) { return unpacked(read_bytes(path), path); }

}  // namespace fovea::data
