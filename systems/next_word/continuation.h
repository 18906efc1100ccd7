// Answers lines: each is the beginning of a text, and the answer continues it.
#pragma once

#include <iosfwd>

#include "fovea/nn/language_model.h"
#include "systems/next_word/tokens.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea::systems::next_word {

// The options say how long and how it is sampled. What was not seen of a line is noted.
void continue_lines(const nn::LanguageModel& model, const Tokens& tokens,
                    const OptionValues& options, const Input& input, std::ostream& out);

}  // namespace fovea::systems::next_word
