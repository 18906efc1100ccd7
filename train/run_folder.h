// A RUN: the folder a training leaves behind. A file has its final name only when it is complete
// and on the disk.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "data/write.h"

namespace fovea::train {

class RunFolder {
 public:
  explicit RunFolder(std::filesystem::path path) : path_(std::move(path)) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  bool has(const std::string& name) const;
  // Creates the folder; unfinished files of a killed run are removed.
  void create() const;
  void write(const std::string& name, std::string_view bytes) const {
    data::write_file(path_ / name, bytes);
  }
  // The whole file; InvalidArgument where it is missing, naming what it should be.
  std::string read(const std::string& name) const;
  void remove(const std::string& name) const;

 private:
  std::filesystem::path path_;
};

}  // namespace fovea::train
