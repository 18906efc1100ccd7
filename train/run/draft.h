// A RUN that is being written: a folder inside the RUN's folder, published in one step when it is
// complete. Until then the previous RUN is unchanged. After a kill --resume continues from it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "train/run/manifest.h"
#include "train/run/run_folder.h"

namespace fovea::train {

inline constexpr const char* kStateFile = "state.safetensors";  // what --resume continues from

class Draft {
 public:
  explicit Draft(std::filesystem::path run) : run_(std::move(run)), path_(run_ / kTrainingFolder) {}

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }
  // Whether a training has started and not finished.
  bool begun() const;
  bool has(const std::string& name) const;
  std::string read(const std::string& name) const;

  // Starts an empty draft; removes what an earlier training left.
  void begin();
  // For one of several trainings that share the draft: the files of the others stay.
  void begin_among_others();
  // Starts a draft with a copy of every file of a complete RUN, to continue from.
  void begin_with(const RunFolder& whole);
  // Continues a draft, where a link is refused; removes half-written files of a killed process.
  void go_on() const;
  // Removes a draft in which nothing was trained: there is no state, and no part is complete.
  void discard_untrained() const;
  // Writes a file of the future RUN.
  void write(const std::string& name, std::string_view bytes);
  // Adds a file that another process has already written: that of a seed or a fold.
  void take(const std::string& name, const Manifest::File& file) { files_[name] = file; }
  // From now on the written and added files are the RUN. Files of the previous RUN are removed;
  // other files stay. One with the name of a new file is kept as NAME.before, NAME.before-2, ….
  void publish(const std::string& program, const std::string& configuration);

 private:
  std::filesystem::path run_, path_;
  std::map<std::string, Manifest::File> files_;
};

// Finishes a publication that was interrupted by a kill. Call it with the RUN locked.
void finish_publication(const std::filesystem::path& run);

// Whether a folder holds files that do not belong to a RUN.
bool has_foreign_files(const std::filesystem::path& folder);

}  // namespace fovea::train
