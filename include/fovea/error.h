// What the library throws. It never aborts and never prints.
#pragma once

#include <stdexcept>
#include <string>

namespace fovea {

// An argument is wrong; the message names it, what was expected and what was got.
struct InvalidArgument : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

// The call is well formed but has no meaning, or no allowed path can serve it; the message gives
// every reason.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace fovea
