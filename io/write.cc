#include "io/write.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "fovea/error.h"

namespace fovea::io {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& name, const char* what, int error = errno) {
  throw InvalidArgument(name + ": " + what + ": " + std::strerror(error));
}

// The number of an open descriptor that a path like /dev/stdout or /dev/fd/3 stands for. Opening
// such a path anew would start again at the beginning of a file the shell appends to.
std::optional<int> descriptor_named(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto [rest, error] = std::from_chars(path.data() + folder.size(), end, number);
    if (error == std::errc() && rest == end && number >= 0) return number;
  }
  return std::nullopt;
}

// The end of a chain of links, whether or not a file is there.
fs::path followed(fs::path path, const std::string& name) {
  for (int links = 0; links < 40; ++links) {
    std::error_code error;
    if (!fs::is_symlink(fs::symlink_status(path, error)) || descriptor_named(path.string()))
      return path;
    const fs::path next = fs::read_symlink(path, error);
    if (error) fail(name, "cannot be followed", error.value());
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  fail(name, "cannot be followed", ELOOP);
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Special files and some file systems have nothing to flush.
bool flushed(int descriptor) {
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP || errno == EROFS;
}

// Flushes a folder's list of names; a failure is reported with `name`.
void sync(const fs::path& folder, const std::string& name) {
  const int handle = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // A folder that one may write into but not list cannot be flushed.
  if (handle < 0 && errno == EACCES) return;
  if (handle < 0) fail(name, "cannot be flushed to the disk");
  const bool good = flushed(handle);
  const int error = errno;
  ::close(handle);
  if (!good) fail(name, "cannot be flushed to the disk", error);
}

// The names of files that are being written. More than these at a time are not known here.
std::array<std::atomic<const char*>, 64> unfinished;
static_assert(std::atomic<const char*>::is_always_lock_free);

void note_unfinished(const char* name) {
  for (auto& one : unfinished)
    if (const char* none = nullptr; one.compare_exchange_strong(none, name)) return;
}

void forget_unfinished(const char* name) {
  for (auto& one : unfinished)
    if (const char* known = name; one.compare_exchange_strong(known, nullptr)) return;
}

}  // namespace

void write_all(int descriptor, std::string_view bytes, const std::string& name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    // A pipe that whoever started the program does not want to wait at: here there is nothing to do
    // until its reader has made room.
    if (written < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      pollfd room{descriptor, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    if (written < 0) fail(name, "cannot be written");
    bytes.remove_prefix(static_cast<size_t>(written));
  }
}

FileWriter::FileWriter(const fs::path& path) : name_(path.string()) {
  if (path.empty()) throw InvalidArgument("file to write: an empty name, expected a path");
  target_ = followed(path, name_);
  struct stat there {};
  if (const auto open = descriptor_named(target_.string())) {
    descriptor_ = ::fcntl(*open, F_DUPFD_CLOEXEC, 3);
    if (descriptor_ < 0) fail(name_, "cannot be written");
  } else if (::stat(target_.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor_ < 0) fail(name_, "cannot be written");
  } else {
    open_beside(target_);
  }
}

void FileWriter::open_beside(const fs::path& path) {
  // A unique name: two processes that write the same file at once must not write into each other's.
  // In a container every program has the same number: the name may be that of one that was killed.
  static std::atomic<unsigned> next = 0;
  do {
    beside_ = folder_of(path) / (".fovea-" + std::to_string(::getpid()) + "-" +
                                 std::to_string(next++) + ".unfinished");
    descriptor_ = ::open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    const int error = errno;
    beside_.clear();
    fail(name_, "cannot be created", error);
  }
  note_unfinished(beside_.c_str());
  struct stat there {};
  if (::stat(path.c_str(), &there) != 0) return;
  // Only root may change a file's owner; otherwise the file belongs to the user who writes it.
  if (::fchown(descriptor_, there.st_uid, there.st_gid) != 0) errno = 0;
  ::fchmod(descriptor_, there.st_mode & 07777);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (beside_.empty()) return;
  ::unlink(beside_.c_str());
  forget_unfinished(beside_.c_str());
}

void FileWriter::finish() {
  if (!flushed(descriptor_)) fail(name_, "cannot be flushed to the disk");
  const int closing = descriptor_;
  descriptor_ = -1;
  if (::close(closing) != 0) fail(name_, "cannot be closed");
  if (beside_.empty()) return;
  if (::rename(beside_.c_str(), target_.c_str()) != 0) fail(name_, "cannot be renamed into place");
  forget_unfinished(beside_.c_str());
  beside_.clear();
  sync(folder_of(target_), name_);
}

void write_file(const fs::path& path, std::string_view bytes) {
  FileWriter file(path);
  file.write(bytes);
  file.finish();
}

void remove_unfinished() {
  for (const auto& one : unfinished)
    if (const char* name = one) ::unlink(name);
}

void sync_folder(const fs::path& folder) { sync(folder, folder.string()); }

}  // namespace fovea::io
