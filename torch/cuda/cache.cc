#include "torch/cuda/cache.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

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

// FNV-1a.
std::string digest_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string digits;
  for (int shift = 60; shift >= 0; shift -= 4) digits += kDigits[hash >> shift & 15];
  return digits;
}
// The whole key stands in the file, so that a clash of names is a miss.
std::string name_of(const std::string& key) { return digest_of(key) + ".cubin"; }

// A file: the key's length and the binary's digest in a line, the key, the binary. A disk that lost
// power may hold a file of the right length with other bytes.
std::string header_of(const std::string& key, std::string_view binary) {
  return std::to_string(key.size()) + " " + digest_of(binary) + "\n" + key;
}

void drop_oldest(const fs::path& place) {
  struct File {
    fs::file_time_type time;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<File> files;
  uint64_t total = 0;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    if (entry.path().extension() != ".cubin") continue;
    const auto time = entry.last_write_time(error);
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
  return binary;
}

void keep_cached(const std::string& key, const std::string& binary) {
  const fs::path place = folder();
  if (place.empty()) return;
  std::error_code error;
  fs::create_directories(place, error);
  static std::atomic<int> count{0};
  const fs::path whole = place / name_of(key);
  const fs::path part = place / (whole.filename().string() + "." + std::to_string(getpid()) + "." +
                                 std::to_string(count++));
  {
    std::ofstream file(part, std::ios::binary);
    file << header_of(key, binary) << binary;
    file.close();
    if (!file) {
      fs::remove(part, error);
      return;
    }
  }
  fs::rename(part, whole, error);
  if (error) {
    fs::remove(part, error);
    return;
  }
  drop_oldest(place);
}

}  // namespace fovea::cuda
