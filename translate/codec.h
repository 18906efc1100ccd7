// Text to token ids and back, with the special tokens that all sequence models share: PAD 0, UNK 1,
// BOS 2, EOS 3.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::translate {

inline constexpr int64_t kPad = 0, kUnknown = 1, kBegin = 2, kEnd = 3;

// A line in tokens. `words[t]` is the word, counted between spaces, that token t is part of:
// alignments are between words.
struct Encoded {
  std::vector<int64_t> ids;
  std::vector<int32_t> words;
};

class Codec {
 public:
  virtual ~Codec() = default;
  virtual Encoded encode(std::string_view line) const = 0;  // without BOS and EOS
  // Special tokens are left out, but for UNK, which shows.
  virtual std::string decode(std::span<const int64_t> ids) const = 0;
  // The words (or characters) of a line that have no token, each once.
  virtual std::vector<std::string> unknown(std::string_view line) const = 0;
  virtual std::string piece(int64_t id) const = 0;  // for pictures
  virtual int64_t size() const = 0;
  virtual std::string bytes() const = 0;  // what from_bytes takes
};

// InvalidArgument if a user's sentence exceeds the limit `sentence`: a search takes as many steps
// as there are tokens, each over all of them.
void check_sentence(const Encoded&);

enum class CodecKind { kWords, kCharacters, kPieces };
CodecKind codec_kind(std::string_view name);  // "words", "characters", "pieces"

struct CodecRequest {
  CodecKind kind = CodecKind::kWords;
  int64_t size = 0;       // pieces: of the vocabulary; words: the most frequent, 0 for all
  int64_t min_count = 1;  // words: rarer ones are UNK
};

// Lower case as Python's str.lower has it: "ß" stays, where case folding would write "ss".
std::string lower_case(std::string_view line);

// Learned from lines. SentencePiece (Kudo & Richardson 2018) learns byte-pair pieces; a size larger
// than the text can fill is lowered to what it can.
std::unique_ptr<Codec> learn_codec(const std::vector<std::string>& lines, const CodecRequest&);
// `name` is for messages. A model that does not keep the special tokens at 0 to 3 is refused.
std::unique_ptr<Codec> codec_from_bytes(std::string_view bytes, const std::string& name);

}  // namespace fovea::translate
