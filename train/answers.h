// Predictions: as lines that people read, or as JSON, one object on each line.
#pragma once

#include <cstddef>
#include <functional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/types.h"

namespace fovea {

// A stream whose reader wants JSON. Code that writes answers through this header does not need to
// know which kind of stream it writes to.
class JsonLines : public std::ostream {
 public:
  using std::ostream::ostream;
};

// One answer in both forms. `text` includes its line ends; if it is empty, nothing is written in
// either form. `fields` is called only where JSON is wanted. It returns one object, or an array of
// them, each of which becomes a line. Without `fields` the object is {"answer": text}.
struct Answered {
  std::string text;
  std::function<Json()> fields = {};
};

// The answer to line or row `number` of the input; in JSON that number comes first.
void write_answer(std::ostream& out, size_t number, const Answered& answered);

// {"answer": the likeliest, "probability": its own, "probabilities": {every name: …}}.
Json class_fields(const std::vector<std::string>& names, std::span<const float> probabilities);

// Answers one line; throws InvalidArgument with the reason if there is no answer.
using Answer = std::function<Answered(size_t number, std::string_view line)>;
// The same by writing text.
using TextAnswer = std::function<void(size_t number, std::string_view line, std::ostream& to)>;

// An answer is written whole, as soon as it is known. A line without an answer is reported to
// `input.refused`, and an empty line, or {"error": …}, is written in its place, so that answers match
// the input line by line. If `input.refused` is empty, an exception is thrown.
void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const Answer& answer);
void answer_line(const Input& input, size_t number, std::string_view line, std::ostream& out,
                 const TextAnswer& answer);
// The same for every line of the input, which must be text as data::each_line takes it.
void answer_lines(const Input& input, std::ostream& out, const Answer& answer);
void answer_lines(const Input& input, std::ostream& out, const TextAnswer& answer);

}  // namespace fovea
