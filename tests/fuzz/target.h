// What the fuzz targets share. A target gets bytes as an enemy would write them, hands them to one
// reader of ours, and throws where a promise is broken: a refusal that is one clean line is fine.
#pragma once

#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/error.h"

namespace fovea::fuzz {

struct Target {
  std::string name;
  void (*run)(std::string_view bytes);
};
// Those linked into this program.
std::vector<Target>& targets();
void run(const Target& target, std::string_view bytes);

// A target is one of these at the top level of its file.
struct Registration {
  Registration(const char* name, void (*run)(std::string_view bytes)) {
    targets().push_back({name, run});
  }
};

struct BrokenPromise : std::logic_error {
  using std::logic_error::logic_error;
};
// Costs nothing where the promise is kept: some are asked for every pixel.
inline void require(bool kept, std::string_view promise) {
  if (!kept) throw BrokenPromise(std::string(promise));
}

// What `accepts` has answered since the start of the program.
struct Answers {
  size_t taken = 0, refused = 0;
};
Answers& answers();

// A refusal says why.
void check_reason(const char* message);
// A refusal of a file is one printable line in our own words that names the file.
void check_message(std::string_view message, std::string_view file);

// Whether `body` takes its input. It may refuse by InvalidArgument, with a message that passes `check`,
// or by Unsupported; any other exception is the caller's, and a find.
template <class Body, class Check>
bool accepts(const Body& body, const Check& check) {
  try {
    body();
    ++answers().taken;
    return true;
  } catch (const InvalidArgument& error) {
    check(error.what());
  } catch (const Unsupported& error) {
    check_reason(error.what());
  }
  ++answers().refused;
  return false;
}
template <class Body>
bool accepts(const Body& body) {
  return accepts(body, check_reason);
}
// The same for a file, or a folder, whose name the refusal must have.
template <class Body>
bool reads(const std::string& file, const Body& body) {
  return accepts(body, [&](const char* message) { check_message(message, file); });
}

// An input taken apart. Numbers come from its end, so that what a file begins with stays first; an
// input that has run out gives zeros.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  uint8_t byte();
  // From 0 to `limit` - 1.
  size_t below(size_t limit);
  bool flag() { return byte() & 1; }
  // What stands before the next byte 0xFF, which no UTF-8 text has: the files of a folder.
  std::string_view part();
  std::string_view rest() const { return bytes_; }

 private:
  std::string_view bytes_;
};

// A folder whose files are in memory: data::read_file of these programs looks here. On the disk are
// empty files of their names, for those who ask whether one is there.
class MemoryFolder {
 public:
  MemoryFolder();
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }
  // The file's path.
  const std::string& write(const std::string& name, std::string_view bytes);
  // Nothing where `path` is none of the files.
  const std::string* find(const std::string& path) const;

 private:
  struct File {
    std::string name, path, bytes;
  };

  std::string path_;
  std::deque<File> files_;  // which keeps the paths it has handed out in their places
};
// One for the whole program.
MemoryFolder& folder();
// The file of that path in any folder there is; nothing where there is none.
const std::string* find_in_memory(const std::string& path);

}  // namespace fovea::fuzz
