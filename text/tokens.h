// Text to words: between blanks as they stand, words split from their punctuation, or the pieces
// of a SentencePiece model.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

using Words = std::vector<std::string>;

class Tokeniser {
 public:
  virtual ~Tokeniser() = default;
  virtual Words split(std::string_view text) const = 0;
  virtual std::string bytes() const { return {}; }  // of a SentencePiece model; otherwise empty
};

// "spaces": what stands between blanks, untouched.
// "words": lower case, punctuation split off, English contractions split as the Penn Treebank
// does (do n't, it 's), HTML line breaks dropped, each Chinese character a word. Text that is
// tokenised already stays as it is.
std::unique_ptr<Tokeniser> tokeniser_named(std::string_view name);
// Any SentencePiece model; `name` is for messages.
std::unique_ptr<Tokeniser> piece_tokeniser(std::string_view model, const std::string& name);
// A model of about `size` byte-pair pieces learned from lines.
std::unique_ptr<Tokeniser> learn_piece_tokeniser(const std::vector<std::string>& lines,
                                                 int64_t size);

// The sentences of a text: HTML line breaks and the words . ! ? end one; one longer than `longest`
// words is cut there, so that no encoder walks further. A text without words has no sentence.
std::vector<Words> sentences(const Tokeniser& tokeniser, std::string_view text, size_t longest);

}  // namespace fovea::text
