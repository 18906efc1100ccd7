// Answers to lines, as every system that predicts line by line gives them.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <string_view>

#include "train/types.h"

namespace fovea {

// Writes the answer to a line; an InvalidArgument says why there is none.
using Answer = std::function<void(size_t number, std::string_view line, std::ostream& to)>;

// An answer appears whole, as soon as it is known. A line without one is named: to `input.refused`,
// and an empty line stands for its answer, so that answers keep in step with the input; or, where
// nobody listens, by an exception.
void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const Answer& answer);
// The same for every line of the input, which must be text as data::each_line takes it.
void answer_lines(const Input& input, std::ostream& out, const Answer& answer);

}  // namespace fovea
