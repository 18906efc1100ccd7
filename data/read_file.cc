// The door of files alone, so that the fuzz targets can put memory in its place.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "data/file.h"
#include "data/lines.h"
#include "data/nearest.h"

namespace fovea::data {
namespace {

// " (did you mean 'data.csv'?)" where a file of nearly that name lies beside it.
std::string beside(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code failed;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    names.push_back(entry->path().filename().string());
  return did_you_mean(path.filename().string(), names);
}

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw FileError(path, 0, "expected a file, found a folder");
  std::ifstream file(path, std::ios::binary);
  const std::string reason = std::strerror(errno);  // of opening it, where that failed
  if (!file)
    throw FileError(path, 0,
                    std::filesystem::exists(path, ignored) ? "cannot be read: " + reason
                                                           : "no such file" + beside(path));
  std::string bytes = read_stream(file, path);
  if (file.bad()) throw FileError(path, 0, "reading failed part-way");
  return unpacked(std::move(bytes), path);
}

}  // namespace fovea::data
