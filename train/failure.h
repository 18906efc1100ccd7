// What a failure is called in front of a user, whoever threw it.
#pragma once

#include <exception>
#include <string>

namespace fovea::train {

// Without libtorch's place in its source and its stack, and with the file before its reason.
std::string words_of(const std::exception& error);

}  // namespace fovea::train
