// The list of a RUN's files, with size and sha256 of each. It marks a folder as a RUN.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace fovea::train {

inline constexpr const char* kManifestFile = "manifest.json";

struct Manifest {
  struct File {
    std::string sha256;
    uint64_t bytes = 0;
  };
  std::string program;                     // the version that wrote the RUN
  std::string configuration;               // sha256 of the request and of its data
  std::map<std::string, File> files = {};  // by path within the RUN

  void add(const std::string& name, std::string_view bytes);
  std::string text() const;
  // InvalidArgument, with `path`, if the text is not a manifest or was changed after it was
  // written.
  static Manifest parse(const std::string& text, const std::string& path);
  // InvalidArgument if the bytes are not those of the file: a flipped bit, a part of it, another
  // file.
  void check(const std::string& name, std::string_view bytes, const std::string& path) const;
};

}  // namespace fovea::train
