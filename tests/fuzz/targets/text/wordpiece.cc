#include "text/wordpiece/wordpiece.h"

#include "data/files/file.h"
#include "tests/fuzz/target.h"
#include "text/wordpiece/read.h"

namespace fovea::fuzz {
namespace {

// The text after the last 0xFF byte is encoded with the vocabulary before it.
struct PiecesAndText {
  explicit PiecesAndText(std::string_view bytes)
      : file(bytes.substr(0, bytes.rfind('\xFF'))),
        text(bytes.rfind('\xFF') == bytes.npos ? "" : bytes.substr(bytes.rfind('\xFF') + 1)) {}
  std::string_view file, text;
};

void check_pieces(const text::WordPiece& pieces, std::string_view text) {
  for (const int64_t id : pieces.encode(text))
    require(id >= 0 && id < pieces.size(), "a number is a piece's");
  text::each_word(text, pieces.table().normalisation, [](std::string_view word, size_t length) {
    require(!word.empty() && length > 0 && length <= word.size(), "a word has characters");
    require(data::is_utf8(word), "a word is UTF-8");
  });
  for (int64_t id = 0; id < pieces.size(); ++id)
    require(pieces.find(pieces.piece(id)) == id, "a piece has its number");
}

void fuzz_wordpiece_vocabulary(std::string_view bytes) {
  const PiecesAndText parts(bytes);
  reads("vocab.txt", [&] {
    const text::WordPiece pieces = text::parse_vocabulary(parts.file, "vocab.txt");
    check_pieces(pieces, parts.text);
    require(text::parse_tokenizer(text::tokenizer_bytes(pieces), "vocab.txt").table().pieces ==
                pieces.table().pieces,
            "pieces survive being written as JSON");
  });
}
const Registration wordpiece_vocabulary{"wordpiece_vocabulary", fuzz_wordpiece_vocabulary};

void fuzz_wordpiece_tokenizer(std::string_view bytes) {
  const PiecesAndText parts(bytes);
  reads("tokenizer.json", [&] {
    const text::WordPiece pieces = text::parse_tokenizer(parts.file, "tokenizer.json");
    check_pieces(pieces, parts.text);
    const std::string again = text::tokenizer_bytes(pieces);
    require(text::tokenizer_bytes(text::parse_tokenizer(again, "tokenizer.json")) == again,
            "a tokenizer survives being written");
  });
}
const Registration wordpiece_tokenizer{"wordpiece_tokenizer", fuzz_wordpiece_tokenizer};

}  // namespace
}  // namespace fovea::fuzz
