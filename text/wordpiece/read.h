// WordPiece vocabularies as Hugging Face writes them: vocab.txt, a piece a line, or tokenizer.json.
// Both files are treated as hostile.
#pragma once

#include <string>
#include <string_view>

#include "text/wordpiece/wordpiece.h"

namespace fovea::text {

// `path` names the file in errors (FileError).
WordPiece parse_vocabulary(std::string_view bytes, const std::string& path,
                           const Normalisation& normalisation = {});
std::string vocabulary_bytes(const WordPiece& pieces);

// A tokenizer of another kind than BERT's, or with a part that is not here, is named.
WordPiece parse_tokenizer(std::string_view bytes, const std::string& path);
std::string tokenizer_bytes(const WordPiece& pieces);

// What tokenizer_config.json says of the letters; the rest of it is not read.
Normalisation parse_normalisation(std::string_view bytes, const std::string& path);

}  // namespace fovea::text
