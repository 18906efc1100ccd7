#include "train/run_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "fovea/error.h"

namespace fovea::train {
namespace {

constexpr const char* kUnfinished = ".unfinished";

struct Descriptor {
  int fd;
  ~Descriptor() {
    if (fd >= 0) ::close(fd);
  }
};

[[noreturn]] void fail(const std::filesystem::path& path, const char* what) {
  throw InvalidArgument(fmt::format("{}: {}: {}", path.string(), what, std::strerror(errno)));
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor handle{::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY)};
  if (handle.fd >= 0) ::fsync(handle.fd);
}

}  // namespace

void write_whole(const std::filesystem::path& path, std::string_view bytes) {
  const std::filesystem::path unfinished = path.string() + kUnfinished;
  {
    const Descriptor file{
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)};
    if (file.fd < 0) fail(path, "cannot be created");
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written = ::write(file.fd, bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) {
        const int error = errno;
        ::unlink(unfinished.c_str());
        errno = error;
        fail(path, "cannot be written");
      }
      done += static_cast<size_t>(written);
    }
    if (::fsync(file.fd) != 0) fail(path, "cannot be flushed to the disk");
  }
  if (::rename(unfinished.c_str(), path.c_str()) != 0) fail(path, "cannot be renamed into place");
  sync_folder(path.parent_path());
}

bool RunFolder::has(const std::string& name) const {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path_ / name, ignored);
}

void RunFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(path_, error);
  if (error)
    throw InvalidArgument(
        fmt::format("{}: cannot be created: {}", path_.string(), error.message()));
  for (const auto& entry : std::filesystem::directory_iterator(path_, error))
    if (entry.path().string().ends_with(kUnfinished)) std::filesystem::remove(entry.path(), error);
}

std::string RunFolder::read(const std::string& name) const {
  std::ifstream file(path_ / name, std::ios::binary);
  if (!file)
    throw InvalidArgument(fmt::format("{}: no {} there, expected a folder that `fovea train` wrote",
                                      path_.string(), name));
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void RunFolder::remove(const std::string& name) const {
  std::error_code ignored;
  std::filesystem::remove(path_ / name, ignored);
}

}  // namespace fovea::train
