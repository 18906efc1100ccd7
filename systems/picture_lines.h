// Pictures that a line of predict's input names: one, or all of a folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "train/answers.h"

namespace fovea::systems {

using AnswerPicture = std::function<Answered(const std::string& path)>;

// Of a folder the answers of all its pictures, in the order of their names. A picture of it that cannot
// be read is reported to `input.refused` and has {"error"}, or its name alone, in its place; if `refused`
// is empty it is an exception.
Answered answer_pictures(const Input& input, size_t number, std::string_view line,
                         const AnswerPicture& answer);

// Shows the pictures one after another. A folder's picture that cannot be read is reported in the same
// way, and the others are shown.
void each_picture(const Input& input, size_t number, std::string_view line,
                  const std::function<void(const std::string& path)>& show);

}  // namespace fovea::systems
