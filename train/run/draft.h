// A RUN in the making: a folder within the RUN's that is published in one step when it is whole.
// Until then what the RUN held before stays as it is, and a kill leaves what --resume goes on with.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "train/run/manifest.h"
#include "train/run/run_folder.h"

namespace fovea::train {

class Draft {
 public:
  explicit Draft(std::filesystem::path run) : run_(std::move(run)), path_(run_ / kTrainingFolder) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  // Whether a training has begun and not ended.
  bool begun() const;
  bool has(const std::string& name) const;
  std::string read(const std::string& name) const;

  // An empty one in place of whatever a training left.
  void begin();
  // One of several trainings that share it: what others have put into it stays.
  void begin_among_others();
  // An empty one with every file of a whole RUN in it, to go on from.
  void begin_with(const RunFolder& whole);
  // Removes what a killed writer left half written.
  void go_on() const;
  // A file of the RUN to be.
  void write(const std::string& name, std::string_view bytes);
  // A file that lies there already, written by another process: a seed's, a fold's.
  void take(const std::string& name, const Manifest::File& file) { files_[name] = file; }
  // What was written and taken is the RUN from now on. Files of the RUN before are gone, files of
  // others stay; one that is in the way of a new file is kept as NAME.before.
  void publish(const std::string& program, const std::string& configuration);

 private:
  std::filesystem::path run_, path_;
  std::map<std::string, Manifest::File> files_;
};

// Does what a publication that was killed had left to do. Call it with the RUN locked.
void finish_publication(const std::filesystem::path& run);

// Whether a folder holds anything that no RUN brings along.
bool has_foreign_files(const std::filesystem::path& folder);

}  // namespace fovea::train
