#include "text/tokens.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <memory>
#include <set>
#include <utility>

#include "data/formats/text.h"
#include "fovea/error.h"
#include "metrics/unicode.h"
#include "text/wordpiece/normalise.h"
#include "translate/codec.h"
#include "translate/pieces/piece_model.h"

namespace fovea::text {
namespace {

constexpr std::string_view kPieceSpace =
    "\xe2\x96\x81";  // ▁, which SentencePiece writes for a space
constexpr std::array<std::string_view, 3> kBreaks = {"<br />", "<br/>", "<br>"};
constexpr std::array<std::string_view, 7> kContractions = {"n't", "'s", "'re", "'ve",
                                                           "'ll", "'d", "'m"};
// A full stop after these, or after a single letter, ends no sentence.
constexpr std::array<std::string_view, 9> kAbbreviations = {"mr", "mrs", "ms", "dr",  "st",
                                                            "vs", "etc", "jr", "prof"};

// Text between HTML line breaks.
std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> out;
  size_t start = 0;
  for (size_t at = text.find("<br"); at != std::string_view::npos; at = text.find("<br", at + 1)) {
    for (const std::string_view one : kBreaks) {
      if (!text.substr(at).starts_with(one)) continue;
      out.push_back(text.substr(start, at - start));
      start = at + one.size();
      break;
    }
  }
  out.push_back(text.substr(start));
  return out;
}

// Punctuation of Chinese, Japanese and Arabic.
constexpr std::u32string_view kOtherMarks = U"、。，．！？；：（）「」『』《》〈〉【】〔〕～・،؛؟۔";

// Chinese is written without blanks: each of its characters becomes a word, as for BERT (Devlin et al.
// 2019), and so does each of those marks. Other text stays as it is, byte for byte.
std::string with_characters_apart(std::string_view line) {
  const auto is_ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (std::all_of(line.begin(), line.end(), is_ascii)) return std::string(line);
  const std::u32string all = metrics::decode_utf8(line);
  std::u32string apart;
  for (const char32_t c : all) {
    if (kOtherMarks.find(c) == std::u32string_view::npos)
      apart.push_back(c);
    else
      apart += {U' ', c, U' '};
  }
  apart = normalised(apart, {.clean = false, .strip_accents = false, .lower_case = false});
  return apart.size() == all.size() ? std::string(line) : metrics::encode_utf8(apart);
}

// Letters, digits and every byte of other scripts.
bool in_word(char c) {
  const auto u = static_cast<unsigned char>(c);
  return u >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class SpaceTokeniser : public Tokeniser {
 public:
  Words split(std::string_view text) const override { return data::words(text); }
};

class WordTokeniser : public Tokeniser {
 public:
  Words split(std::string_view text) const override {
    Words out;
    for (const std::string_view line : lines_of(text))
      for (const std::string& blank_free :
           data::words(data::lower_ascii(with_characters_apart(line))))
        part(blank_free, out);
    return out;
  }

 private:
  // Runs of word characters, with the apostrophes, hyphens, points and commas between two of them;
  // any other character alone.
  static void part(std::string_view chunk, Words& out) {
    for (size_t at = 0; at < chunk.size();) {
      if (!in_word(chunk[at]) &&
          !(chunk[at] == '\'' && at + 1 < chunk.size() && in_word(chunk[at + 1]))) {
        const size_t run = chunk[at] == '-' || chunk[at] == '.'
                               ? std::min(chunk.find_first_not_of(chunk[at], at), chunk.size()) - at
                               : 1;
        out.emplace_back(chunk.substr(at, run));
        at += run;
        continue;
      }
      size_t end = at + 1;
      const auto joins = [&](char c) { return c == '\'' || c == '-' || c == '.' || c == ','; };
      while (end < chunk.size() &&
             (in_word(chunk[end]) || (joins(chunk[end]) && end + 1 < chunk.size() &&
                                      in_word(chunk[end + 1]) && in_word(chunk[end - 1])))) {
        // A point or comma joins digits only: "3.5" is a number, "end.Then" two words.
        const bool number = chunk[end] != '.' && chunk[end] != ','
                                ? true
                                : std::isdigit(static_cast<unsigned char>(chunk[end - 1])) != 0;
        if (!number) break;
        ++end;
      }
      contracted(chunk.substr(at, end - at), out);
      at = end;
    }
  }
  static void contracted(std::string_view word, Words& out) {
    for (const std::string_view ending : kContractions) {
      if (word.size() > ending.size() && word.ends_with(ending)) {
        out.emplace_back(word.substr(0, word.size() - ending.size()));
        out.emplace_back(ending);
        return;
      }
    }
    out.emplace_back(word);
  }
};

class PieceTokeniser : public Tokeniser {
 public:
  PieceTokeniser(std::string_view model, const std::string& name)
      : model_(model), processor_(translate::open_piece_model(model_, name)) {}
  Words split(std::string_view text) const override {
    return processor_->EncodeAsPieces({text.data(), text.size()});
  }
  std::string bytes() const override { return model_; }

 private:
  std::string model_;
  std::unique_ptr<sentencepiece::SentencePieceProcessor> processor_;
};

bool ends_sentence(const Words& words, size_t at) {
  std::string_view word = words[at];
  if (word.starts_with(kPieceSpace)) word.remove_prefix(kPieceSpace.size());
  static const std::set<std::string_view> kEnds = {"!", "?", "。", "！", "？", "؟", "۔"};
  if (kEnds.contains(word)) return true;
  if (word != ".") return false;
  if (at == 0) return true;
  const std::string& before = words[at - 1];
  return before.size() > 1 &&
         std::find(kAbbreviations.begin(), kAbbreviations.end(), before) == kAbbreviations.end();
}

}  // namespace

std::unique_ptr<Tokeniser> tokeniser_named(std::string_view name) {
  if (name == "spaces") return std::make_unique<SpaceTokeniser>();
  if (name == "words") return std::make_unique<WordTokeniser>();
  throw InvalidArgument("tokens: '" + std::string(name) + "', expected spaces, words or pieces");
}

std::unique_ptr<Tokeniser> piece_tokeniser(std::string_view model, const std::string& name) {
  return std::make_unique<PieceTokeniser>(model, name);
}

std::unique_ptr<Tokeniser> learn_piece_tokeniser(const std::vector<std::string>& lines,
                                                 int64_t size) {
  const translate::CodecRequest request{.kind = translate::CodecKind::kPieces, .size = size};
  return piece_tokeniser(translate::learn_codec(lines, request)->bytes(), "pieces");
}

std::vector<Words> sentences(const Tokeniser& tokeniser, std::string_view text, size_t longest) {
  std::vector<Words> out;
  for (const std::string_view line : lines_of(text)) {
    Words words = tokeniser.split(line), sentence;
    std::vector<bool> ends(words.size());
    bool quoted = false;
    for (size_t at = 0; at < words.size(); ++at) ends[at] = ends_sentence(words, at);
    for (size_t at = 0; at < words.size(); ++at) {
      // Closing quotes and further marks stay with the sentence they close.
      quoted ^= words[at] == "\"";
      const bool more = at + 1 < words.size() &&
                        ((words[at + 1] == "\"" && quoted) || words[at + 1] == ")" || ends[at + 1]);
      sentence.push_back(std::move(words[at]));
      if ((ends[at] && !more) || sentence.size() >= longest)
        out.push_back(std::exchange(sentence, {}));
    }
    if (!sentence.empty()) out.push_back(std::move(sentence));
  }
  return out;
}

}  // namespace fovea::text
