// The text of an exception for the user, whichever library threw it.
#pragma once

#include <exception>
#include <string>

namespace fovea::train {

// Without libtorch's source location and stack trace, and with the file before the reason.
std::string words_of(const std::exception& error);

}  // namespace fovea::train
