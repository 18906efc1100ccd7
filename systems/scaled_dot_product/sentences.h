// Sentences in which "it" means the living thing, or nobody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/random.h"

namespace fovea::systems::scaled_dot_product {

inline const std::vector<std::string> kAnimals = {"animal", "dog",   "cat",     "horse",
                                                  "fox",    "child", "tourist", "goat"};

struct Sentence {
  std::vector<std::string> words;
  int64_t asks = 0, meant = -1;  // where "it" stands, and the word it means; -1: nobody
  int64_t animal = 0;
};

Sentence draw(data::Random& random);
// A sentence with the word "it"; `name` and `line` are for messages.
Sentence parsed(std::string_view text, const std::string& name, size_t line);
// whom<TAB>sentence: an animal of the sentence, or nobody.
std::vector<Sentence> read_sentences(const std::string& path);
// The animal's name, or nobody.
const std::string& answer(int64_t animal);

}  // namespace fovea::systems::scaled_dot_product
