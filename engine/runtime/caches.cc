#include "engine/runtime/caches.h"

#include <unistd.h>

#include <algorithm>

#include "engine/tile.h"

namespace fovea::engine {
namespace {

constexpr size_t kFewestRows = 12;

size_t read_level2() {
#ifdef _SC_LEVEL2_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (bytes > 0) return static_cast<size_t>(bytes);
#endif
  return size_t{1} << 20;
}

}  // namespace

size_t level2_bytes() {
  static const size_t bytes = read_level2();
  return bytes;
}

size_t strip_rows(size_t keys, size_t element_bytes) {
  return std::clamp(level2_bytes() / 2 / element_bytes / std::max<size_t>(1, keys), kFewestRows,
                    kMaxQueries);
}

}  // namespace fovea::engine
