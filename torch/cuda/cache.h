// Compiled programs on disk, so that the next process need not compile. Never needed: where nothing
// can be read or written, programs are kept in memory only.
//
// In FOVEA_CACHE, else $XDG_CACHE_HOME/fovea, else ~/.cache/fovea. A file is written whole under
// another name and then renamed, so that many processes may do so at once; the oldest go when the
// folder outgrows kCacheBytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fovea::cuda {

inline constexpr uint64_t kCacheBytes = uint64_t{256} << 20;

// Of the device texts of this library.
const std::string& texts_digest();

// `key` says all that a binary depends on.
std::optional<std::string> cached(const std::string& key);
void keep_cached(const std::string& key, const std::string& binary);

}  // namespace fovea::cuda
