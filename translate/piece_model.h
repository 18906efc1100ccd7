// SentencePiece models from outside. A model is looked through before the library sees it: the
// library walks the compiled rules of normalisation (a double-array trie, Aoe 1989) without looking
// where it steps, so that one damaged number sends it outside of the array.
#pragma once

#include <memory>
#include <string>

namespace sentencepiece {
class SentencePieceProcessor;
}

namespace fovea::translate {

// InvalidArgument where the model's rules lead outside of themselves, and where the library refuses
// the model or throws; `name` is the file's.
std::unique_ptr<sentencepiece::SentencePieceProcessor> open_piece_model(const std::string& model,
                                                                        const std::string& name);

}  // namespace fovea::translate
