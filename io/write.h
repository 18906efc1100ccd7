// Writing files. A reader sees the old file or the new one, never a part of it. No error is ignored.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace fovea::io {

// All of the bytes, or InvalidArgument: "NAME: cannot be written: No space left on device".
void write_all(int descriptor, std::string_view bytes, const std::string& name);

// A regular file, or one that does not exist yet, is written under another name in the same folder,
// flushed to the disk and renamed. A link to it stays a link, and its mode stays. What is not a
// regular file (/dev/null, a FIFO) is written in place. Every error is an InvalidArgument.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path);
  ~FileWriter();  // if not finished, the old file stays
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::string_view bytes) { write_all(descriptor_, bytes, name_); }
  void finish();

 private:
  void open_beside(const std::filesystem::path& path);

  std::string name_;                       // as the user gave it
  std::filesystem::path target_, beside_;  // beside_ empty: written in place
  int descriptor_ = -1;
};

void write_file(const std::filesystem::path& path, std::string_view bytes);

// Removes what any FileWriter has not finished. For a process that ends where it stands: safe in a
// signal's handler and without memory.
void remove_unfinished();

// Flushes a folder's list of names to the disk, so that a rename or a removal in it is permanent.
void sync_folder(const std::filesystem::path& folder);

}  // namespace fovea::io
