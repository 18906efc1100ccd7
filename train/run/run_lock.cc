#include "train/run/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "io/write.h"
#include "train/usage_error.h"

namespace fovea::train {
namespace {

constexpr const char* kLockFile = ".lock";

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "this machine";
}

std::string own_name() { return fmt::format("process {} on {}", ::getpid(), host_name()); }

// For a file system without locks: whether the process named in the file still runs, as far as can
// be seen on this machine.
bool lives(const std::string& holder) {
  int pid = 0;
  std::array<char, 256> host{};
  if (std::sscanf(holder.c_str(), "process %d on %255s", &pid, host.data()) != 2) return false;
  return host_name() != host.data() || ::kill(pid, 0) == 0 || errno == EPERM;
}

// The locks of this process, for the signal handler. A training has two at most. A lock for which
// there is no free entry leaves its file, and the next training takes it over.
std::array<std::atomic<const RunLock*>, 8> held;
std::atomic<const char*> folder_along = nullptr;  // the name is in its lock
static_assert(std::atomic<const RunLock*>::is_always_lock_free &&
              std::atomic<const char*>::is_always_lock_free);

void replace_held(const RunLock* from, const RunLock* to) {
  for (auto& one : held)
    if (const RunLock* expected = from; one.compare_exchange_strong(expected, to)) return;
}

}  // namespace

RunLock::RunLock(std::filesystem::path folder)
    : folder_(std::move(folder)), path_(folder_ / kLockFile) {}

// The delegated constructor has ended when this one throws, so the destructor runs.
RunLock::RunLock(std::filesystem::path folder, Kind kind) : RunLock(std::move(folder)) {
  do {  // a holder that ends may remove the file between our open() and our lock
    kind_.reset();
    if (descriptor_ >= 0) ::close(descriptor_);
    // Not through a link, which would lead to a file of others in a folder that came from others.
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (descriptor_ < 0)
      throw InvalidArgument(fmt::format(
          "{}: cannot be locked: {}", path_.string(),
          errno == ELOOP ? "a link, expected a file of our own" : std::strerror(errno)));
    check_own();
    take(kind);
  } while (!is_the_one_at_its_path());
  replace_held(nullptr, this);
}

RunLock::~RunLock() {
  if (descriptor_ < 0) return;
  replace_held(this, nullptr);
  if (const char* own = folder_.c_str()) folder_along.compare_exchange_strong(own, nullptr);
  remove_file();
  ::close(descriptor_);
}

void RunLock::remove_file() const {
  // The last one of several that share it removes the file.
  const bool last =
      kind_ && (*kind_ == Kind::kExclusive || ::flock(descriptor_, LOCK_EX | LOCK_NB) == 0);
  if (!last || ::unlink(path_.c_str()) == 0) return;
  // A file that cannot be removed is emptied. Otherwise the next training would report that this
  // one did not finish. If that fails too, nothing more can be done.
  [[maybe_unused]] const int emptied = ::ftruncate(descriptor_, 0);
}

void RunLock::take_folder_along() const { folder_along = folder_.c_str(); }

void remove_lock_files() {
  for (const auto& one : held)
    if (const RunLock* lock = one) lock->remove_file();
  if (const char* const folder = folder_along) ::rmdir(folder);  // fails where something is in it
}

void RunLock::become(Kind kind) {
  if (kind != kind_) take(kind);
}

void RunLock::take(Kind kind) {
  const int wanted = kind == Kind::kExclusive ? LOCK_EX : LOCK_SH;
  const int error = ::flock(descriptor_, wanted | LOCK_NB) == 0 ? 0 : errno;
  if (error == 0) kind_ = kind;  // from here on the destructor removes the file
  const std::string before = holder();
  const std::string who = before.empty() ? "another process" : before;
  if (error == EWOULDBLOCK)
    throw UsageError(fmt::format("{}: {} is training into it", folder_.string(), who));
  if (error != 0 && lives(before))
    throw UsageError(fmt::format(
        "{}: {} is training into it; if that process has ended, remove {} (this file system has no "
        "locks: {})",
        folder_.string(), who, path_.string(), std::strerror(error)));
  kind_ = kind;
  if (::ftruncate(descriptor_, 0) != 0 || kind == Kind::kShared) return;
  if (before != own_name()) taken_from_ = before;
  io::write_all(descriptor_, own_name(), path_.string());
}

// Taking the lock replaces the file's contents.
void RunLock::check_own() const {
  constexpr std::string_view kBegins = "process ";
  if (!kBegins.starts_with(holder().substr(0, kBegins.size())))
    throw UsageError(fmt::format(
        "{}: not a lock of fovea's, and its contents would be lost; rename or remove it",
        path_.string()));
}

bool RunLock::is_the_one_at_its_path() const {
  struct stat own {
  }, there{};
  return ::fstat(descriptor_, &own) == 0 && ::stat(path_.c_str(), &there) == 0 &&
         own.st_ino == there.st_ino && own.st_dev == there.st_dev;
}

std::string RunLock::holder() const {
  std::array<char, 512> text{};
  const ssize_t size = ::pread(descriptor_, text.data(), text.size(), 0);
  return size > 0 ? std::string(text.data(), static_cast<size_t>(size)) : "";
}

}  // namespace fovea::train
