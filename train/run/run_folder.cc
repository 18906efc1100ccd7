#include "train/run/run_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <ctime>

#include "data/files/file.h"
#include "fovea/error.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// Why nobody can tell whether the file is there (a folder that is closed to the user, links in a
// circle); empty if one can.
std::string unreachable(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  const bool known = type != fs::file_type::none && type != fs::file_type::unknown;
  return known ? "" : "cannot be read: " + error.message();
}

std::string why_not(const fs::path& path) {
  if (std::string reason = unreachable(path / kManifestFile); !reason.empty()) return reason;
  std::error_code ignored;
  if (fs::is_directory(path / kTrainingFolder, ignored))
    return "training has not finished: `fovea train … --resume` continues it";
  if (is_file(path / "config.json"))
    return fmt::format(
        "no {} there: no run, or one of a version that wrote none, which must be trained again",
        kManifestFile);
  return fmt::format("no {} there, expected a folder that `fovea train` wrote", kManifestFile);
}

}  // namespace

bool RunFolder::is_whole(const fs::path& path) {
  return is_file(path / kReadyFolder / kManifestFile) || is_file(path / kManifestFile);
}

RunFolder::RunFolder(const fs::path& path) : path_(path), places_{path} {
  if (!is_whole(path)) throw InvalidArgument(fmt::format("{}: {}", path.string(), why_not(path)));
  // A file is in one of the two: it is renamed from the first into the second.
  if (is_file(path / kReadyFolder / kManifestFile))
    places_.insert(places_.begin(), path / kReadyFolder);
  const fs::path manifest = *this / kManifestFile;
  manifest_ = Manifest::parse(data::read_file(manifest.string()), manifest.string());
}

RunFolder RunFolder::member(const std::string& name) const {
  RunFolder out;
  out.path_ = path_ / name;
  for (const fs::path& place : places_) out.places_.push_back(place / name);
  const std::string listed = name + "/" + kManifestFile;
  out.manifest_ = Manifest::parse(read(listed), (*this / listed).string());
  return out;
}

std::string RunFolder::date() const {
  // Not fs::last_write_time, which throws for a date after 2262.
  struct stat found = {};
  std::tm parts{};
  if (::stat((*this / kManifestFile).c_str(), &found) != 0 || !localtime_r(&found.st_mtime, &parts))
    return "";
  char text[32];
  return std::string(text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts));
}

fs::path RunFolder::operator/(const std::string& name) const {
  for (const fs::path& place : places_)
    if (is_file(place / name)) return place / name;
  return path_ / name;
}

std::string RunFolder::read(const std::string& name) const {
  try {
    return read_listed(name);
  } catch (const InvalidArgument&) {
    if (!replaced()) throw;
    throw InvalidArgument(fmt::format(
        "{}: another training has replaced the run while it was read; try again", path_.string()));
  }
}

bool RunFolder::replaced() const {
  try {
    return RunFolder(path_).manifest_.text() != manifest_.text();
  } catch (const InvalidArgument&) {
    return false;
  }
}

std::string RunFolder::read_listed(const std::string& name) const {
  const std::string path = (*this / name).string();
  const auto listed = manifest_.files.find(name);
  if (const std::string reason = unreachable(path); !reason.empty())
    throw InvalidArgument(path + ": " + reason);
  if (!is_file(path))
    throw InvalidArgument(fmt::format("{}: missing, a file of the run ({})", path, kManifestFile));
  // Some files of a run may be empty, which data::read_file refuses.
  std::string bytes =
      listed != manifest_.files.end() && listed->second.bytes == 0 ? "" : data::read_file(path);
  manifest_.check(name, bytes, path);
  return bytes;
}

}  // namespace fovea::train
