// Generated documents with known answers: 4,000 for training, 500 for validation, 1,000 for test.
#pragma once

#include <cstdint>

#include "text/corpus.h"

namespace fovea::text {

// "the plot was really great": one or three clauses, one sentence in ten negated; the majority
// decides. A sum of word vectors fails on the negated tenth.
Corpus generate_reviews(uint64_t seed);

// "the plot was not dull and the cast was great": two clauses that mean the same; of ten sentences
// four negate none, four one, two both. Counting words gives 70 % at best (those without "not", and
// half of the others). Seeing that "not" occurs twice, and inverting the answer, gives 80 %. One
// "not" with two adjectives that disagree needs the order of the words.
Corpus generate_negation(uint64_t seed);

// "the food was great but the service was slow": two aspects, asked about one. Where the clauses
// disagree the document is `mixed`. True words: those of the clause asked about.
Corpus generate_aspects(uint64_t seed);

// Five to nine sentences of fact that hide one to three polar ones of one polarity. True sentences:
// the polar ones.
Corpus generate_hidden(uint64_t seed);
// The lists its sentences draw from, a slot each: words that can stand in each other's place.
std::vector<std::vector<std::string>> hidden_slots();

}  // namespace fovea::text
