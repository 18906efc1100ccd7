// The words of a text as BERT's basic tokeniser finds them (Devlin et al. 2019): control characters
// dropped, Chinese characters alone, accents off, small letters, then what stands between blanks and
// punctuation. Equal to the `tokenizers` package, whose classes unicode_tables.cc has.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace fovea::text {

struct Normalisation {
  bool clean = true;          // drops control characters; every blank becomes a space
  bool chinese = true;        // each Chinese character is a word
  bool strip_accents = true;  // canonical decomposition without the marks
  bool lower_case = true;
};

// visit(word in UTF-8, its number of characters) for each word; the view ends with the call. Bytes
// that are not UTF-8 count as U+FFFD.
using WordVisitor = std::function<void(std::string_view word, size_t characters)>;
void each_word(std::string_view text, const Normalisation& normalisation, const WordVisitor& visit);

// The text with its blanks, before it is cut into words.
std::u32string normalised(std::u32string_view text, const Normalisation& normalisation);

}  // namespace fovea::text
