// A complete RUN, for reading: each file is compared with the manifest.
//
//   RUN/manifest.json   marks a RUN, and lists its files with their sha256
//   RUN/.training/      a training that is running or was stopped: train/run/draft.h
//   RUN/.ready/         a complete RUN that is being moved into place; it already counts
//   RUN/.lock           the process that trains: train/run/run_lock.h
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "train/run/manifest.h"

namespace fovea::train {

inline constexpr const char* kTrainingFolder = ".training";
inline constexpr const char* kReadyFolder = ".ready";

class RunFolder {
 public:
  // Whether there is a manifest.
  static bool is_whole(const std::filesystem::path& path);
  // InvalidArgument if it is not a RUN; the message says what is there instead.
  explicit RunFolder(const std::filesystem::path& path);
  // One of the seeds or folds a RUN consists of.
  RunFolder member(const std::string& name) const;

  const std::filesystem::path& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }
  bool has(const std::string& name) const { return manifest_.files.contains(name); }
  // When it was written, in local time: "2026-11-18 09:30". Empty for a seed or a fold.
  std::string date() const;
  // Where the file is now.
  std::filesystem::path operator/(const std::string& name) const;
  // The whole file. InvalidArgument if it is missing or was changed, or if the run has been
  // replaced since the folder was opened.
  std::string read(const std::string& name) const;

 private:
  RunFolder() = default;
  std::string read_listed(const std::string& name) const;
  bool replaced() const;

  std::filesystem::path path_;
  std::vector<std::filesystem::path> places_;  // where files are looked for, in this order
  Manifest manifest_;
};

}  // namespace fovea::train
