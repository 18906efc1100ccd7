// What the fuzz targets share. A target gets bytes as an enemy would write them, hands them to one
// reader of ours, and throws where a promise is broken: a refusal that is one clean line is fine.
#pragma once

#include <cstdint>
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
void require(bool kept, const std::string& promise);

// A refusal of a file is one printable line in our own words that names the file.
void check_message(const std::string& message, const std::string& file);

// Whether `body` takes its input. It may refuse by InvalidArgument or Unsupported; any other
// exception is the caller's, and a find.
template <class Body>
bool accepts(const Body& body) {
  try {
    body();
    return true;
  } catch (const InvalidArgument& error) {
    require(*error.what() != '\0', "a refusal says why");
  } catch (const Unsupported& error) {
    require(*error.what() != '\0', "a refusal says why");
  }
  return false;
}
// The same for a file, or a folder, whose name the refusal must have.
template <class Body>
bool reads(const std::string& file, const Body& body) {
  return accepts([&] {
    try {
      body();
    } catch (const InvalidArgument& error) {
      check_message(error.what(), file);
      throw;
    }
  });
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

// A folder whose files are in memory: writing one costs no disk, and any reader can open it.
class MemoryFolder {
 public:
  MemoryFolder();
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }
  // The file's path.
  std::string write(const std::string& name, std::string_view bytes);

 private:
  struct File {
    std::string name, path;
    int descriptor;
  };
  std::string path_;
  std::vector<File> files_;
};
// One for the whole program.
MemoryFolder& folder();

}  // namespace fovea::fuzz
