// A WordPiece vocabulary from text.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/wordpiece/wordpiece.h"

namespace fovea::text {

// [PAD] 0, [UNK] 1, [CLS] 2, [SEP] 3, [MASK] 4, the characters by falling count, then pieces joined
// of two, the most frequent pair first, until there are `size` or no pair occurs twice. Equal counts
// go by the pieces' order. InvalidArgument where the lines have no word.
WordPiece learn_wordpiece(const std::vector<std::string>& lines, int64_t size,
                          const Normalisation& normalisation = {});

}  // namespace fovea::text
