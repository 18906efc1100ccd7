#include "tests/fuzz/target.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "data/file.h"

namespace fovea::fuzz {
namespace {

std::string_view current;  // the input that is being tried

void check_call(bool good, const char* what) {
  if (!good) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

void run(const Target& target, std::string_view bytes) {
  current = bytes;
  target.run(bytes);
}

void require(bool kept, const std::string& promise) {
  if (!kept) throw BrokenPromise(promise);
}

void check_message(const std::string& message, const std::string& file) {
  require(data::visible(message) == message, "a refusal is printable: " + message);
  require(message.find(file) != std::string::npos, "a refusal names " + file + ": " + message);
  // What is quoted from the input may be anything.
  for (const char* foreign : {"json.exception", "basic_string::", "vector::", "map::at", "stod"})
    require(message.find(foreign) == std::string::npos ||
                current.find(foreign) != std::string_view::npos,
            "a refusal is in our words: " + message);
}

uint8_t Bytes::byte() {
  if (bytes_.empty()) return 0;
  const auto last = static_cast<uint8_t>(bytes_.back());
  bytes_.remove_suffix(1);
  return last;
}

size_t Bytes::below(size_t limit) {
  size_t value = byte();
  if (limit > 256) value = value << 8 | byte();
  return value % limit;
}

std::string_view Bytes::part() {
  const size_t end = std::min(bytes_.find('\xFF'), bytes_.size());
  const std::string_view found = bytes_.substr(0, end);
  bytes_.remove_prefix(std::min(end + 1, bytes_.size()));
  return found;
}

MemoryFolder::MemoryFolder() {
  std::string path = std::filesystem::temp_directory_path() / "fovea-fuzz-XXXXXX";
  check_call(mkdtemp(path.data()) != nullptr, "mkdtemp");
  path_ = path;
}

MemoryFolder::~MemoryFolder() {
  for (const File& file : files_) close(file.descriptor);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string MemoryFolder::write(const std::string& name, std::string_view bytes) {
  auto file = std::find_if(files_.begin(), files_.end(),
                           [&](const File& known) { return known.name == name; });
  if (file == files_.end()) {
    const int descriptor = memfd_create(name.c_str(), 0);
    check_call(descriptor >= 0, "memfd_create");
    const std::string path = path_ + "/" + name;
    std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(descriptor), path);
    file = files_.insert(files_.end(), {name, path, descriptor});
  }
  check_call(ftruncate(file->descriptor, 0) == 0, "ftruncate");
  check_call(
      pwrite(file->descriptor, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
      "pwrite");
  return file->path;
}

MemoryFolder& folder() {
  static MemoryFolder shared;
  return shared;
}

}  // namespace fovea::fuzz
