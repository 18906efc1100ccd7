// Sizes that follow the processor's caches. A row's result does not depend on them.
#pragma once

#include <cstddef>

namespace fovea::engine {

// The second-level cache of a core, as the system reports it; 1 MB if it does not.
size_t level2_bytes();

// How many rows of scores a normaliser that sees whole rows gets at a time: as many as keep them
// within half of the second-level cache, but enough to use a loaded key panel several times.
size_t strip_rows(size_t keys, size_t element_bytes);

}  // namespace fovea::engine
