#include "translate/codec.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "data/files/limits.h"
#include "data/formats/vocabulary.h"
#include "fovea/error.h"
#include "metrics/unicode.h"
#include "translate/pieces/pieces.h"

namespace fovea::translate {
namespace {

constexpr std::string_view kWordsMagic = "fovea words 1", kCharactersMagic = "fovea characters 1";

std::vector<std::string> units(std::string_view line, CodecKind kind) {
  std::vector<std::string> out;
  const std::u32string text = metrics::decode_utf8(line);
  if (kind == CodecKind::kWords) {
    for (const auto& word : metrics::split(text)) out.push_back(metrics::encode_utf8(word));
  } else {
    for (const char32_t c : text) out.push_back(metrics::encode_utf8(std::u32string(1, c)));
  }
  return out;
}

// Words or characters, numbered by a vocabulary; each is a word of its own to alignments.
class ListCodec : public Codec {
 public:
  ListCodec(CodecKind kind, data::Vocabulary vocabulary)
      : kind_(kind), vocabulary_(std::move(vocabulary)) {}

  Encoded encode(std::string_view line) const override {
    Encoded out;
    out.ids = vocabulary_.ids(units(line, kind_));
    out.words.resize(out.ids.size());
    std::iota(out.words.begin(), out.words.end(), 0);
    return out;
  }
  std::string decode(std::span<const int64_t> ids) const override {
    std::string out;
    for (const int64_t id : ids) {
      if (id == kPad || id == kBegin || id == kEnd) continue;
      if (kind_ == CodecKind::kWords && !out.empty()) out += ' ';
      out += vocabulary_.word(id);
    }
    return out;
  }
  std::vector<std::string> unknown(std::string_view line) const override {
    std::vector<std::string> out;
    for (std::string& unit : units(line, kind_))
      if (!vocabulary_.has(unit) && std::find(out.begin(), out.end(), unit) == out.end())
        out.push_back(std::move(unit));
    return out;
  }
  std::string piece(int64_t id) const override {
    const std::string& word = vocabulary_.word(id);
    return word == " " ? kBlank : word;
  }
  int64_t size() const override { return vocabulary_.size(); }
  std::string bytes() const override {
    return std::string(kind_ == CodecKind::kWords ? kWordsMagic : kCharactersMagic) + "\n" +
           vocabulary_.text();
  }

 private:
  CodecKind kind_;
  data::Vocabulary vocabulary_;
};

data::Vocabulary learn_vocabulary(const std::vector<std::string>& lines,
                                  const CodecRequest& request) {
  std::vector<std::vector<std::string>> sentences;
  for (const std::string& line : lines) sentences.push_back(units(line, request.kind));
  return data::Vocabulary::of(sentences,
                              {.least_count = request.min_count, .most_words = request.size});
}

std::unique_ptr<Codec> list_from_bytes(std::string_view bytes, const std::string& name) {
  const size_t end = std::min(bytes.find('\n'), bytes.size() - 1);
  const std::string_view head = bytes.substr(0, end);
  const CodecKind kind = head.starts_with(kWordsMagic) ? CodecKind::kWords : CodecKind::kCharacters;
  return std::make_unique<ListCodec>(
      kind, data::Vocabulary::parse(std::string(bytes.substr(end + 1)), name));
}

}  // namespace

void check_sentence(const Encoded& sentence) {
  data::check_count(data::Limit::kSentence, sentence.ids.size());
}

CodecKind codec_kind(std::string_view name) {
  if (name == "words") return CodecKind::kWords;
  if (name == "characters") return CodecKind::kCharacters;
  if (name == "pieces") return CodecKind::kPieces;
  throw InvalidArgument("tokens: '" + std::string(name) +
                        "', expected words, characters or pieces");
}

std::string lower_case(std::string_view line) {
  return metrics::encode_utf8(metrics::lower(metrics::decode_utf8(line)));
}

std::unique_ptr<Codec> learn_codec(const std::vector<std::string>& lines,
                                   const CodecRequest& request) {
  if (request.kind == CodecKind::kPieces) return learn_pieces(lines, request.size);
  return std::make_unique<ListCodec>(request.kind, learn_vocabulary(lines, request));
}

std::unique_ptr<Codec> codec_from_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with(kWordsMagic) || bytes.starts_with(kCharactersMagic))
    return list_from_bytes(bytes, name);
  return pieces_from_bytes(bytes, name);
}

}  // namespace fovea::translate
