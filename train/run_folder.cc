#include "train/run_folder.h"

#include <fmt/format.h>

#include <fstream>

#include "fovea/error.h"

namespace fovea::train {
namespace {

constexpr const char* kUnfinished = ".unfinished";

}  // namespace

bool RunFolder::has(const std::string& name) const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path_ / name, ignored);
}

void RunFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error)
    throw InvalidArgument(
        fmt::format("{}: cannot be created: {}", path_.string(), error.message()));
  for (const auto& entry : std::filesystem::directory_iterator(path_, error))
    if (entry.path().string().ends_with(kUnfinished)) std::filesystem::remove(entry.path(), error);
}

std::string RunFolder::read(const std::string& name) const {
  std::ifstream file(path_ / name, std::ios::binary);
  if (!file)
    throw InvalidArgument(fmt::format("{}: no {} there, expected a folder that `fovea train` wrote",
                                      path_.string(), name));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void RunFolder::remove(const std::string& name) const {
  std::error_code ignored;
  std::filesystem::remove(path_ / name, ignored);
}

}  // namespace fovea::train
