// Answers of a model to lines: the words at [MASK], a sentence's vector, its class, the place of an
// answer.
#pragma once

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "systems/bert/start.h"

namespace fovea::systems::bert {

// Whether the option `answer` asks for this one; "auto": for `otherwise`.
bool is_asked(const OptionValues& options, const std::string& answer, const std::string& otherwise);

// Reads lines in batches of `at_once`, so that the encoder is called once for all of them. `read`
// makes a sequence from a line or refuses it. `answers` gives a text for each sequence.
struct LineAnswers {
  size_t at_once = 32;
  std::function<Sequence(std::string_view line)> read = {};
  std::function<std::vector<std::string>(const std::vector<const Sequence*>&)> answers = {};
};
void answer_in_batches(const Input& input, std::ostream& out, const LineAnswers& how);

// The vector's numbers, separated by blanks.
std::vector<std::string> embedded_lines(Start& start,
                                        const std::vector<const Sequence*>& sequences);

// {"tokens": […], "states": [[…], …]}: the last layer's, a row for each token.
std::vector<std::string> state_lines(Start& start, const std::vector<const Sequence*>& sequences);
// Those of the answers that every task has: embed and states; nothing for another.
std::optional<std::vector<std::string>> common_lines(Start& start, const OptionValues& options,
                                                     const std::vector<const Sequence*>& sequences,
                                                     const std::string& otherwise);

// Where [MASK] stands. InvalidArgument if there is none, or if the model has no head to fill it.
std::vector<int64_t> places_to_fill(Start& start, const Sequence& sequence);

struct Guess {
  int64_t piece = 0;
  double probability = 0;
};
// The likeliest pieces at each [MASK] of a sequence. Special pieces are left out; the probabilities
// are over the other pieces.
std::vector<std::vector<Guess>> guesses(Start& start, const Sequence& sequence, int64_t count);
// `word p` for each guess, separated by tabs; " | " between places.
std::vector<std::string> filled_lines(Start& start, const std::vector<const Sequence*>& sequences,
                                      int64_t count);

}  // namespace fovea::systems::bert
