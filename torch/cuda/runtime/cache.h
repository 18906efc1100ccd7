// Compiled programs on disk, so that the next process need not compile. Never needed: where nothing
// can be read or written, programs are kept in memory only.
//
// In FOVEA_CACHE, else $XDG_CACHE_HOME/fovea, else ~/.cache/fovea. Several processes may write the same
// file at once (io/write.h). When the folder is larger than kCacheBytes, the programs that were not
// used for longest are removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace fovea::cuda {

inline constexpr uint64_t kCacheBytes = uint64_t{256} << 20;

// The digest of all device texts of this library.
const std::string& texts_digest();

// `key` has everything that the binary depends on.
std::optional<std::string> cached(const std::string& key);
void keep_cached(const std::string& key, const std::string& binary);

}  // namespace fovea::cuda
