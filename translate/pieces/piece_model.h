// SentencePiece models from outside. A model is checked before the library reads it: the library
// follows the compiled rules of normalisation (a double-array trie, Aoe 1989) without checking
// bounds, so that one damaged number makes it read outside of the array.
#pragma once

#include <memory>
#include <string>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace fovea::translate {

// InvalidArgument if the model's rules lead outside of the array, or if the library refuses the
// model or throws; `name` is the name of the file.
std::unique_ptr<sentencepiece::SentencePieceProcessor> open_piece_model(const std::string& model,
                                                                        const std::string& name);

}  // namespace fovea::translate
