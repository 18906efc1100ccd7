// In place of data/files/read_file.cc: the files of the targets, which are in memory.
#include "data/files/file.h"
#include "tests/fuzz/target.h"

namespace fovea::data {

std::string read_file(const std::string& path) {
  const std::string* bytes = fuzz::find_in_memory(path);
  if (bytes == nullptr) throw FileError(path, 0, "no such file");
  return unpacked(*bytes, path);
}

}  // namespace fovea::data
