#include "data/files/read.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/nearest.h"

namespace fovea::data {
namespace {

namespace fs = std::filesystem;

thread_local int refusals = 0;  // how many NoFiles exist

// Says nothing of whether there is such a file.
void check_permitted(const std::string& path) {
  if (refusals > 0) throw FileError(path, 0, "files are not read here: give their contents");
}

[[noreturn]] void fail(const std::string& path, int error) {
  throw FileError(path, 0, std::string("cannot be read: ") + std::strerror(error));
}

// " (did you mean 'data.csv'?)" if the folder has a file with a similar name; of a link, where it leads.
std::string beside(const fs::path& path) {
  std::error_code none;
  if (fs::is_symlink(fs::symlink_status(path, none)))
    return ": a link to " + shown(fs::read_symlink(path, none).string()) + ", which is not there";
  std::vector<std::string> names;
  std::error_code failed;
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end;
       entry.increment(failed))
    names.push_back(entry->path().filename().string());
  return did_you_mean(path.filename().string(), names);
}

class Descriptor {
 public:
  explicit Descriptor(const std::string& path)
      : number_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number_ >= 0) return;
    if (errno == ENOENT) throw FileError(path, 0, "no such file" + beside(path));
    fail(path, errno);
  }
  ~Descriptor() { ::close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

NoFiles::NoFiles() { ++refusals; }
NoFiles::~NoFiles() { --refusals; }

std::string read_bytes(const std::string& path) {
  check_permitted(path);
  const Descriptor file(path);
  struct stat there {};
  if (::fstat(file.number(), &there) != 0) fail(path, errno);
  if (S_ISDIR(there.st_mode)) throw FileError(path, 0, "expected a file, found a folder");
  const uint64_t most = limit(Limit::kFile);
  // A pipe, or a file of /proc, does not give its size.
  const auto size = S_ISREG(there.st_mode) ? static_cast<uint64_t>(there.st_size) : 0;
  if (size > most) throw FileError(path, 0, beyond(Limit::kFile));
  std::string text;
  text.reserve(static_cast<size_t>(size));
  std::string block(1 << 16, '\0');
  while (true) {
    const ssize_t count = ::read(file.number(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, errno);
    if (count == 0) return text;
    text.append(block, 0, static_cast<size_t>(count));
    if (text.size() > most) throw FileError(path, 0, beyond(Limit::kFile));
  }
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  check_permitted(folder.string());
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with('.') && name != "__MACOSX") out.push_back(entry->path());
  }
  if (error) throw FileError(folder.string(), 0, "cannot be read: " + error.message());
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace fovea::data
