// Another rank ended, or is silent. Starting all ranks again, with --resume, may help. Does not include
// libtorch.
#pragma once

#include <stdexcept>

namespace fovea::train {

struct RankLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fovea::train
