// Generated documents with a known answer (systems.md §6): 4,000 to learn from, 500 to choose by,
// 1,000 to judge by.
#pragma once

#include <cstdint>

#include "text/corpus.h"

namespace fovea::text {

// "the plot was really great": one or three clauses, one sentence in ten negated; the majority
// decides. Word sums fail on the tenth.
Corpus generate_reviews(uint64_t seed);

// "the plot was not dull and the cast was great": two clauses that mean the same; of ten sentences
// four negate none, four one, two both. Who counts words can say 70 % at best (those without "not",
// and half of the rest); who also sees that "not" occurs twice, and turns the answer round, 80 %;
// one "not" beside two adjectives that disagree is for those who read the order.
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
