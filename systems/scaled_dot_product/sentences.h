// Sentences in which "it" means the living thing, or what the word after "too" fits, or nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/random.h"

namespace fovea::systems::scaled_dot_product {

// What "it" can mean: a living thing, a place, or nobody. In this order they are the classes.
inline const std::vector<std::string> kAnimals = {"animal", "dog",   "cat",     "horse",
                                                  "fox",    "child", "tourist", "goat"};
inline const std::vector<std::string> kPlaces = {"street", "road",   "river", "field",
                                                 "bridge", "square", "yard",  "track"};

// What decides about "it".
enum class Meaning {
  kLiving,   // it always means the living thing
  kContext,  // "too tired" is said of the living thing, "too wide" of the place
};
Meaning meaning_of(const std::string& name);
// The words that "it" can mean, then "nobody".
const std::vector<std::string>& answers(Meaning meaning);

struct Sentence {
  std::vector<std::string> words;
  int64_t asks = 0, meant = -1;  // where "it" stands, and the word it means; -1: nobody
  int64_t answer = 0;            // a number of answers()
};

Sentence draw(Meaning meaning, data::Random& random);
// A sentence with the word "it"; `name` and `line` are for messages. Whom it means is known where
// the rules of the generated sentences tell.
Sentence parsed(Meaning meaning, std::string_view text, const std::string& name, size_t line);
// whom<TAB>sentence: one of answers() that stands in the sentence, or nobody.
std::vector<Sentence> read_sentences(Meaning meaning, const std::string& path);

}  // namespace fovea::systems::scaled_dot_product
