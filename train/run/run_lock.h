// One training at a time in a folder. The lock ends with its process, so a killed process leaves no
// lock. The lock file names the process that holds it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace fovea::train {

class RunLock {
 public:
  // kShared: one of several seeds or folds, beside others of the same RUN.
  enum class Kind { kExclusive, kShared };
  // UsageError names the process and the machine that hold it.
  RunLock(std::filesystem::path folder, Kind kind);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  void become(Kind kind);
  // "process 1234 on HOST" if a process held the lock before and ended without releasing it.
  const std::string& taken_from() const { return taken_from_; }
  // For a folder that was made for this lock: if a signal ends the process while nothing else is in
  // it, the folder goes with the file.
  void take_folder_along() const;
  // Removes the file, not the lock, which ends with the process.
  void remove_file() const;

 private:
  explicit RunLock(std::filesystem::path folder);  // of nothing yet
  void take(Kind kind);
  void check_own() const;
  bool is_the_one_at_its_path() const;
  std::string holder() const;

  std::filesystem::path folder_, path_;
  int descriptor_ = -1;
  std::optional<Kind> kind_;  // as it is held
  std::string taken_from_;
};

// Removes the files of the locks that this process holds, for a process that ends without its
// destructors. Safe in a signal handler.
void remove_lock_files();

}  // namespace fovea::train
