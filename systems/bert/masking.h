// Which tokens an encoder must guess (Devlin et al. 2019, 3.1). Of the chosen ones, eight in ten
// become [MASK], one becomes another piece, and one stays as it is.
#pragma once

#include <cstdint>
#include <vector>

#include "data/random.h"
#include "text/wordpiece/wordpiece.h"

namespace fovea::systems::bert {

struct Masked {
  std::vector<int64_t> ids;     // with the changes
  std::vector<int64_t> places;  // chosen, in order
  std::vector<int64_t> labels;  // what stood there
};

// Of `ids`, `share` of those that are not special are chosen, at least one where there is any.
Masked masked(const std::vector<int64_t>& ids, const text::WordPiece& pieces, double share,
              data::Random& random);

}  // namespace fovea::systems::bert
