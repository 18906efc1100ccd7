#include "torch/cuda/runtime/cache.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <vector>

#include "io/sha256.h"
#include "io/write.h"
#include "torch/cuda/runtime/nvrtc.h"
#include "torch/cuda/texts.h"

namespace fovea::cuda {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  if (const char* given = std::getenv("FOVEA_CACHE"); given && *given) return given;
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache && *cache)
    return fs::path(cache) / "fovea";
  if (const char* home = std::getenv("HOME"); home && *home)
    return fs::path(home) / ".cache" / "fovea";
  return {};
}

std::string digest_of(std::string_view text) { return io::sha256(text).substr(0, 16); }
// The file contains the whole key, so that two keys with the same file name are told apart.
std::string name_of(const std::string& key) { return digest_of(key) + ".cubin"; }

// A file: the key's length and the binary's digest in a line, the key, the binary. A disk that lost
// power may hold a file of the right length with other bytes.
std::string header_of(const std::string& key, std::string_view binary) {
  return std::to_string(key.size()) + " " + digest_of(binary) + "\n" + key;
}

// A file that io::FileWriter has not renamed yet. Writing one takes a moment; one that is older than
// this has lost its process.
bool is_unfinished(const fs::path& path) {
  return path.extension() == ".unfinished" && path.filename().string().starts_with(".fovea-");
}
constexpr std::chrono::hours kPatience{1};

void drop_unused(const fs::path& place) {
  struct File {
    fs::file_time_type time;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (const auto& entry : fs::directory_iterator(place, error)) {
    const bool unfinished = is_unfinished(entry.path());
    if (!unfinished && entry.path().extension() != ".cubin") continue;
    const auto time = entry.last_write_time(error);
    if (error) continue;  // another process has removed it
    if (unfinished) {
      if (now - time > kPatience) fs::remove(entry.path(), error);
      continue;
    }
    const auto bytes = entry.file_size(error);
    if (error) continue;
    files.push_back({time, bytes, entry.path()});
    total += bytes;
  }
  if (total <= kCacheBytes) return;
  std::sort(files.begin(), files.end(),
            [](const File& x, const File& y) { return x.time < y.time; });
  for (const File& file : files) {
    if (total <= kCacheBytes / 4 * 3) return;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace

const std::string& texts_digest() {
  static const std::string digest = [] {
    std::string all;
    for (const auto& embedded : embedded_texts()) all += embedded.text;
    return digest_of(all);
  }();
  return digest;
}

std::string cache_key(const std::string& text, const std::string& architecture,
                      const std::string& driver) {
  return architecture + " nvrtc " + nvrtc_version() + " driver " + driver + " texts " +
         texts_digest() + "\n" + text;
}

std::string cache_folder() { return folder().string(); }

std::optional<std::string> cached(const std::string& key) {
  const fs::path place = folder();
  if (place.empty()) return std::nullopt;
  std::ifstream file(place / name_of(key), std::ios::binary);
  if (!file) return std::nullopt;
  std::string all((std::istreambuf_iterator<char>(file)), {});
  const size_t length = header_of(key, "").size();
  if (all.size() <= length) return std::nullopt;
  std::string binary = all.substr(length);
  if (!all.starts_with(header_of(key, binary))) return std::nullopt;
  std::error_code ignored;  // a folder that can be read only
  fs::last_write_time(place / name_of(key), fs::file_time_type::clock::now(), ignored);
  return binary;
}

void keep_cached(const std::string& key, const std::string& binary) {
  const fs::path place = folder();
  if (place.empty()) return;
  try {
    fs::create_directories(place);
    io::FileWriter file(place / name_of(key));
    file.write(header_of(key, binary));
    file.write(binary);
    file.finish();
  } catch (const std::exception&) {
    return;  // a full or read-only disk: the program stays in memory
  }
  drop_unused(place);
}

}  // namespace fovea::cuda
