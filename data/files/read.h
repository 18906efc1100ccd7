// Reading whole files and folders. A read error is never taken for the end of a file: it is a
// FileError with the system's reason.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fovea::data {

// The bytes of a file as they are. Refuses a folder, a missing or unreadable file, and more than the
// limit `file`.
std::string read_bytes(const std::string& path);

// The contents of a folder, sorted by name, without what other programs leave there: names that begin
// with a full stop (.DS_Store, ._picture.png, .ipynb_checkpoints) and __MACOSX.
std::vector<std::filesystem::path> entries_of(const std::filesystem::path& folder);

// While it exists, nothing is read on its thread: read_bytes and entries_of refuse the path. For input
// that comes from others and may name files, as a request to a server does.
class NoFiles {
 public:
  NoFiles();
  ~NoFiles();
  NoFiles(const NoFiles&) = delete;
  NoFiles& operator=(const NoFiles&) = delete;
};

}  // namespace fovea::data
