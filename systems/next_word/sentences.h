// Sentences in which one earlier word decides the last: "on monday she waited quietly for the train".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/random.h"

namespace fovea::systems::next_word {

struct Sentence {
  std::vector<std::string> words;
  int64_t decides = -1;  // the place of the deciding word; -1: not known
};

Sentence draw(data::Random& random);
// The same for words of unknown origin: those of a template have a deciding word.
Sentence sentence_of(std::vector<std::string> words);

}  // namespace fovea::systems::next_word
