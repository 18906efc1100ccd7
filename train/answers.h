// Predictions for lines, for all systems that predict line by line.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string_view>

#include "train/types.h"

namespace fovea {

// Writes the answer to a line; an InvalidArgument says why there is none.
using Answer = std::function<void(size_t number, std::string_view line, std::ostream& to)>;

// An answer is written whole, as soon as it is known. A line without an answer is reported to
// `input.refused`, and an empty line is written in its place, so that answers match the input line
// by line. If `input.refused` is empty, an exception is thrown.
void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const Answer& answer);
// The same for every line of the input, which must be text as data::each_line takes it.
void answer_lines(const Input& input, std::ostream& out, const Answer& answer);

}  // namespace fovea
