// Sentences in which "it" means the living thing, the place, or nobody: how they end decides.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/random.h"

namespace fovea::systems::scaled_dot_product {

// What "it" may mean: living things first, then places.
inline const std::vector<std::string> kThings = {
    "animal", "dog",  "cat",   "horse", "fox",    "child",  "tourist", "goat",
    "street", "road", "river", "field", "bridge", "square", "yard",    "track"};
inline constexpr size_t kLiving = 8;  // of them

struct Sentence {
  std::vector<std::string> words;
  int64_t asks = 0, meant = -1;  // where "it" stands, and the word it means; -1: nobody
  int64_t thing = 0;             // of kThings; their number: nobody
};

Sentence draw(data::Random& random);
// A sentence with the word "it"; `name` and `line` are for messages.
Sentence parsed(std::string_view text, const std::string& name, size_t line);
// whom<TAB>sentence: a thing of the sentence, or nobody.
std::vector<Sentence> read_sentences(const std::string& path);
// The thing's name, or nobody.
const std::string& answer(int64_t thing);

}  // namespace fovea::systems::scaled_dot_product
