// A task whose weights can be written in the format of other libraries: `fovea export`.
#pragma once

#include "train/types.h"

namespace fovea {

class Exports {
 public:
  virtual ~Exports() = default;
  // The files of a folder. `Written::data` and `truth` stay empty.
  virtual Written exported() const = 0;
};

}  // namespace fovea
