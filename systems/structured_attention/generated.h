// Data for structured attention: formulas whose symbols have a tree, and words with a run in them.
#pragma once

#include <cstdint>

#include "text/corpus.h"
#include "translate/corpus/corpus.h"

namespace fovea::systems::structured_attention {

// Prefix to infix (Kim et al. 2017): "( * ( + 15 7 ) 1 8 )" becomes "( 15 + 7 ) * 1 * 8". Operators
// stand `depth` deep, each with two or three arguments; numbers are 0 to 20. A link joins a symbol
// with the one it was written from. `train` of them are for training.
translate::Corpus generate_formulas(uint64_t seed, int64_t depth, int64_t train);

// Colours, of which some are dark: "red darkblue green …". Dark ones with at most one other between
// them form the run, ends and gaps included; a single dark one is no run. The label is the commonest
// colour of the run, and all single ones have one other colour.
text::Corpus generate_spans(uint64_t seed);

}  // namespace fovea::systems::structured_attention
