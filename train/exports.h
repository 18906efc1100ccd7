// A task whose weights also leave in the form of others: `fovea export`.
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
