// A name or a value the user chose is wrong: the command line prints it and exits with 2.
#pragma once

#include "fovea/error.h"

namespace fovea {

struct UsageError : InvalidArgument {
  using InvalidArgument::InvalidArgument;
};

}  // namespace fovea
