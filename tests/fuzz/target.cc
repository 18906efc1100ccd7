#include "tests/fuzz/target.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "data/files/file.h"

namespace fovea::fuzz {
namespace {

std::string_view current;  // the input that is being tried

std::vector<const MemoryFolder*>& folders() {
  static std::vector<const MemoryFolder*> all;
  return all;
}

// Of UTF-8. Not by data::visible, which writes the text anew for each input.
bool is_printable(std::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if (byte < 0x20 || byte == 0x7F) return false;
    if (byte == 0xC2 && i + 1 < text.size() && static_cast<uint8_t>(text[i + 1]) < 0xA0)
      return false;
  }
  return data::is_utf8(text);
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

Answers& answers() {
  static Answers all;
  return all;
}

void check_reason(const char* message) { require(*message != '\0', "a refusal says why"); }

void check_message(std::string_view message, std::string_view file) {
  const auto fail = [&](const std::string& promise) {
    throw BrokenPromise("a refusal " + promise + ": " + std::string(message));
  };
  if (!is_printable(message)) fail("is printable");
  if (message.find(file) == std::string_view::npos) fail("names " + std::string(file));
  // What is quoted from the input may be anything, also an escape beside letters: "\x8b" and "asic_".
  const size_t open = std::min(message.find('\''), message.size());
  const size_t close = std::min(message.rfind('\''), message.size());
  for (const std::string_view foreign :
       {"json.exception", "basic_string::", "vector::", "map::at", "stod"})
    for (const std::string_view own : {message.substr(0, open), message.substr(close)})
      if (own.find(foreign) != std::string_view::npos &&
          current.find(foreign) == std::string_view::npos)
        fail("is in our words");
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
  if (mkdtemp(path.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), path);
  path_ = path;
  folders().push_back(this);
}

MemoryFolder::~MemoryFolder() {
  std::erase(folders(), this);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

const std::string& MemoryFolder::write(const std::string& name, std::string_view bytes) {
  auto file = std::find_if(files_.begin(), files_.end(),
                           [&](const File& known) { return known.name == name; });
  if (file == files_.end()) {
    file = files_.insert(files_.end(), {name, path_ + "/" + name, {}});
    std::ofstream empty(file->path);
  }
  file->bytes = bytes;
  return file->path;
}

const std::string* MemoryFolder::find(const std::string& path) const {
  for (const File& file : files_)
    if (file.path == path) return &file.bytes;
  return nullptr;
}

const std::string* find_in_memory(const std::string& path) {
  for (const MemoryFolder* one : folders())
    if (const std::string* bytes = one->find(path)) return bytes;
  return nullptr;
}

MemoryFolder& folder() {
  static MemoryFolder shared;
  return shared;
}

}  // namespace fovea::fuzz
