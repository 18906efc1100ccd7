#include "train/run/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "data/files/file.h"
#include "io/folder.h"
#include "io/write.h"
#include "fovea/error.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";  // written first: a draft without it holds nothing
constexpr std::string_view kUnfinished = ".unfinished";

[[noreturn]] void fail(const fs::path& path, const char* what, const std::error_code& error) {
  throw InvalidArgument(fmt::format("{}: {}: {}", path.string(), what, error.message()));
}

void move_to(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::rename(from, to, error);
  if (error) fail(to, "cannot be renamed into place", error);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) fail(path, "cannot be removed", error);
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(fs::symlink_status(path, ignored));
}

bool is_folder(const fs::path& path) {  // not a link to one
  std::error_code ignored;
  return fs::is_directory(fs::symlink_status(path, ignored));
}

// What others have put where a file of the run is to be is kept, and what was kept before is too.
void keep(const fs::path& path) {
  fs::path kept = path.string() + ".before";
  for (int number = 2; is_there(kept); ++number)
    kept = fmt::format("{}.before-{}", path.string(), number);
  move_to(path, kept);
}

// The folder of a file of the run. A file or a link of others in its place is kept; a link may lead
// anywhere.
void make_own_folder(const fs::path& run, const fs::path& name) {
  fs::path folder = run;
  for (const auto& part : name.parent_path()) {
    folder /= part;
    if (is_there(folder) && !is_folder(folder)) keep(folder);
  }
  io::make_folder(folder);
}

// Whether a file of the run lies in it, and not behind a link.
bool lies_within(const fs::path& run, const fs::path& name) {
  fs::path folder = run;
  for (const auto& part : name.parent_path())
    if (!is_folder(folder /= part)) return false;
  return true;
}

// Files of the previous run. Its folder is removed with the last of them.
void remove_old(const fs::path& file, const fs::path& run) {
  std::error_code error;
  fs::remove(file, error);
  if (error) fail(file, "cannot be removed", error);
  if (file.parent_path() == run) return;
  fs::remove(file.parent_path(), error);
  if (error && error != std::errc::directory_not_empty)
    fail(file.parent_path(), "cannot be removed", error);
}

// Files are replaced, never changed, so a hard link is as good as a copy.
void link_or_copy(const fs::path& from, const fs::path& to) {
  io::make_folder(to.parent_path());
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (error) fs::copy_file(from, to, error);
  if (error) fail(to, "cannot be copied", error);
}

Manifest manifest_in(const fs::path& folder) {
  const fs::path path = folder / kManifestFile;
  if (!is_there(path)) return {};
  return Manifest::parse(data::read_file(path.string()), path.string());
}

// Moves everything but the manifest into place. The manifest comes last, because it marks the rest
// as complete.
void move_files(const fs::path& from, const fs::path& to) {
  const Manifest now = manifest_in(from), before = manifest_in(to);
  std::set<fs::path> touched = {to};
  for (const auto& [name, file] : now.files) {
    if (!is_there(from / name)) continue;  // it was moved before the kill
    make_own_folder(to, name);
    if (is_there(to / name) && !before.files.contains(name)) keep(to / name);
    move_to(from / name, to / name);
    touched.insert((to / name).parent_path());
  }
  for (const auto& [name, file] : before.files) {
    if (now.files.contains(name) || !lies_within(to, name)) continue;
    remove_old(to / name, to);
    touched.insert((to / name).parent_path());
  }
  for (const fs::path& folder : touched)
    if (is_there(folder)) io::sync_folder(folder);
}

// A draft has no links of ours, and one of others would lead what is written out of the RUN.
void refuse_links(const fs::path& draft) {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(draft, ignored))
    if (entry.is_symlink(ignored))
      throw InvalidArgument(fmt::format(
          "{}: a link, expected a file or folder that `fovea train` wrote", entry.path().string()));
}

// A draft, or what is left of one to which nothing had been written yet.
bool is_draft(const fs::path& folder) {
  if (!is_folder(folder)) return false;
  std::error_code ignored;
  if (fs::exists(folder / kConfig, ignored)) return true;
  const fs::directory_iterator entries(folder, ignored);
  return std::all_of(begin(entries), end(entries), [](const auto& entry) {
    return entry.path().string().ends_with(kUnfinished);
  });
}

}  // namespace

bool Draft::begun() const { return is_folder(path_) && has(kConfig); }

bool Draft::has(const std::string& name) const {
  std::error_code ignored;
  return fs::is_regular_file(path_ / name, ignored);
}

std::string Draft::read(const std::string& name) const {
  return data::read_file((path_ / name).string());
}

void Draft::begin() {
  if (is_folder(path_)) {
    // The configuration goes last: until then the folder is known as ours.
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(path_, ignored))
      if (entry.path().filename() != kConfig) remove_tree(entry.path());
  }
  remove_tree(path_);
  io::make_folder(path_);
}

void Draft::begin_among_others() { io::make_folder(path_); }

void Draft::begin_with(const RunFolder& whole) {
  begin();
  // The configuration is written last: without it the draft does not count.
  for (const auto& [name, file] : whole.manifest().files)
    if (name != kConfig) link_or_copy(whole / name, path_ / name);
  link_or_copy(whole / kConfig, path_ / kConfig);
}

void Draft::go_on() const {
  refuse_links(path_);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(path_, ignored))
    if (entry.path().string().ends_with(kUnfinished)) fs::remove(entry.path(), ignored);
}

void Draft::discard_untrained() const {
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(path_, ignored))
    if (entry.path().filename() == kStateFile || entry.path().filename() == kManifestFile) return;
  fs::remove_all(path_, ignored);  // what remains is refused by name, like any unfinished run
}

void Draft::write(const std::string& name, std::string_view bytes) {
  io::write_file(path_ / name, bytes);
  Manifest one;
  one.add(name, bytes);
  files_[name] = one.files.at(name);
}

void Draft::publish(const std::string& program, const std::string& configuration) {
  const Manifest manifest{program, configuration, files_};
  io::write_file(path_ / kManifestFile, manifest.text());
  move_to(path_, run_ / kReadyFolder);
  io::sync_folder(run_);
  finish_publication(run_);
}

void finish_publication(const fs::path& run) {
  const fs::path ready = run / kReadyFolder;
  if (!is_there(ready)) return;
  if (!is_folder(ready)) return keep(ready);
  if (is_there(ready / kManifestFile)) {
    move_files(ready, run);
    move_to(ready / kManifestFile, run / kManifestFile);
    io::sync_folder(run);
  }
  // The manifest moved last. Where neither folder has one, `.ready` is somebody else's.
  if (is_there(run / kManifestFile)) remove_tree(ready);
}

bool has_foreign_files(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const fs::path name = entry.path().filename();
    if (name != ".lock" && (name != kTrainingFolder || !is_draft(entry.path()))) return true;
  }
  return false;
}

}  // namespace fovea::train
