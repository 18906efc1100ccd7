// Compiled programs on disk, so that the next process need not compile. Never needed: where nothing
// can be read or written, programs are kept in memory only.
//
// In FOVEA_CACHE, else $XDG_CACHE_HOME/fovea, else ~/.cache/fovea. Several processes may write the same
// file at once (io/write.h). When the folder is larger than kCacheBytes, the programs that were not
// used for longest are removed; what a process that was killed left half written, an hour later.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fovea::cuda {

inline constexpr uint64_t kCacheBytes = uint64_t{256} << 20;

// The digest of all device texts of this library.
const std::string& texts_digest();

// Everything that a program's binary depends on: its text and those that it includes, the
// architecture it is for, the driver that loads it, and the NVRTC that compiles it.
std::string cache_key(const std::string& text, const std::string& architecture,
                      const std::string& driver);

std::optional<std::string> cached(const std::string& key);
void keep_cached(const std::string& key, const std::string& binary);

// Where they are kept; empty: nowhere.
std::string cache_folder();

}  // namespace fovea::cuda
