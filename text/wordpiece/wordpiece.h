// WordPiece (Schuster & Nakajima 2012; Devlin et al. 2019): a word is cut into the longest pieces of
// a vocabulary, from its beginning. Pieces inside a word are written with "##" before them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/wordpiece/normalise.h"

namespace fovea::text {

struct PieceTable {
  std::vector<std::string> pieces = {};  // in the order of their numbers
  // Found in a text as they stand, before anything else: [CLS], [MASK], …
  std::vector<std::string> specials = {};
  Normalisation normalisation = {};
  std::string unknown = "[UNK]";
  std::string continuing = "##";
  size_t longest_word = 100;  // in characters; a longer one is unknown
};

inline const std::vector<std::string> kBertSpecials = {"[PAD]", "[UNK]", "[CLS]", "[SEP]",
                                                       "[MASK]"};

class WordPiece {
 public:
  // InvalidArgument where a piece is given twice, or a special one, or the one for unknown words, is
  // not among them.
  explicit WordPiece(PieceTable table);

  // Without [CLS] and [SEP].
  std::vector<int64_t> encode(std::string_view text) const;
  // A piece's number.
  std::optional<int64_t> find(std::string_view piece) const;
  // The same where a model cannot do without; InvalidArgument names the piece.
  int64_t number(std::string_view piece) const;
  const std::string& piece(int64_t id) const { return table_.pieces[static_cast<size_t>(id)]; }
  bool is_special(int64_t id) const { return special_[static_cast<size_t>(id)]; }
  int64_t size() const { return static_cast<int64_t>(table_.pieces.size()); }
  const PieceTable& table() const { return table_; }

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  using Numbers = std::unordered_map<std::string, int64_t, Hash, std::equal_to<>>;

  void encode_word(std::string_view word, size_t characters, std::vector<int64_t>& out) const;
  void encode_plain(std::string_view text, std::vector<int64_t>& out) const;

  PieceTable table_;
  Numbers numbers_;
  int64_t unknown_ = 0;
  size_t longest_piece_ = 0;       // in bytes
  std::vector<bool> special_;      // by number
  std::vector<int64_t> specials_;  // longest first
  std::string first_bytes_;        // of the specials
};

}  // namespace fovea::text
