#include "text/wordpiece/normalise.h"

#include <algorithm>
#include <array>
#include <span>

#include "metrics/unicode.h"
#include "text/wordpiece/unicode_tables.h"

namespace fovea::text {
namespace {

constexpr char32_t kFirstHangul = 0xAC00, kLastHangul = 0xD7A3;
constexpr char32_t kCapitalDottedI = 0x130, kDotAbove = 0x307;
constexpr size_t kAscii = 128;

template <class Row>
const Row* row_of(const Row* rows, size_t count, char32_t c) {
  const Row* end = rows + count;
  const Row* found =
      std::lower_bound(rows, end, c, [](const Row& row, char32_t x) { return row.last < x; });
  return found != end && found->first <= c ? found : nullptr;
}
bool is_removed(char32_t c) {
  return row_of(unicode::kRemoved, unicode::kRemovedSize, c) != nullptr;
}
bool is_blank(char32_t c) { return row_of(unicode::kBlank, unicode::kBlankSize, c) != nullptr; }
bool is_mark(char32_t c) { return row_of(unicode::kMark, unicode::kMarkSize, c) != nullptr; }
bool is_chinese(char32_t c) {
  return row_of(unicode::kChinese, unicode::kChineseSize, c) != nullptr;
}
bool is_punctuation(char32_t c) {
  return row_of(unicode::kPunctuation, unicode::kPunctuationSize, c) != nullptr;
}

int32_t combining_class(char32_t c) {
  const auto* run = row_of(unicode::kCombining, unicode::kCombiningSize, c);
  return run == nullptr ? 0 : run->order;
}

void put_lower(char32_t c, std::u32string& out) {
  if (c == kCapitalDottedI) {
    out += {U'i', kDotAbove};
    return;
  }
  const auto* run = row_of(unicode::kLower, unicode::kLowerSize, c);
  const bool mapped = run != nullptr && (c - run->first) % static_cast<char32_t>(run->step) == 0;
  out.push_back(mapped ? static_cast<char32_t>(static_cast<int64_t>(c) + run->delta) : c);
}

void put_decomposed(char32_t c, std::u32string& out) {
  if (c >= kFirstHangul && c <= kLastHangul) {  // the Unicode Standard, 3.12
    const char32_t syllable = c - kFirstHangul;
    out += {0x1100 + syllable / 588, 0x1161 + syllable % 588 / 28};
    if (syllable % 28 != 0) out.push_back(0x11A7 + syllable % 28);
    return;
  }
  const std::span rows(unicode::kDecompositions, unicode::kDecompositionsSize);
  const auto found =
      std::lower_bound(rows.begin(), rows.end(), c,
                       [](const unicode::Decomposition& row, char32_t x) { return row.of < x; });
  if (found == rows.end() || found->of != c)
    out.push_back(c);
  else
    out.append(unicode::kParts + found->at, found->count);
}

// Canonical decomposition, marks in canonical order.
std::u32string decomposed(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) put_decomposed(c, out);
  for (auto at = out.begin(); at != out.end();) {
    if (combining_class(*at) == 0) {
      ++at;
      continue;
    }
    auto end = at;
    while (end != out.end() && combining_class(*end) != 0) ++end;
    std::stable_sort(
        at, end, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
  return out;
}

std::u32string cleaned(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text)
    if (!is_removed(c)) out.push_back(is_blank(c) ? U' ' : c);
  return out;
}

std::u32string with_chinese_apart(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (const char32_t c : text) {
    if (is_chinese(c))
      out += {U' ', c, U' '};
    else
      out.push_back(c);
  }
  return out;
}

// Most text is ASCII, in which a character has one class and no accent.
enum class Ascii : uint8_t { kLetter, kBlank, kPunctuation, kRemoved };
std::array<Ascii, kAscii> ascii_classes(bool clean) {
  std::array<Ascii, kAscii> out{};
  for (size_t i = 0; i < kAscii; ++i) {
    const auto c = static_cast<char32_t>(i);
    out[i] = clean && is_removed(c) ? Ascii::kRemoved
             : is_blank(c)          ? Ascii::kBlank
             : is_punctuation(c)    ? Ascii::kPunctuation
                                    : Ascii::kLetter;
  }
  return out;
}

void each_ascii_word(std::string_view text, const Normalisation& normalisation,
                     const WordVisitor& visit) {
  static const std::array<Ascii, kAscii> cleaning = ascii_classes(true),
                                         keeping = ascii_classes(false);
  const auto& classes = normalisation.clean ? cleaning : keeping;
  std::string word;
  const auto end_word = [&] {
    if (!word.empty()) visit(word, word.size());
    word.clear();
  };
  for (const char c : text) {
    const Ascii kind = classes[static_cast<size_t>(c)];
    if (kind == Ascii::kRemoved) continue;
    if (kind == Ascii::kLetter) {
      const bool capital = normalisation.lower_case && c >= 'A' && c <= 'Z';
      word.push_back(capital ? static_cast<char>(c + ('a' - 'A')) : c);
      continue;
    }
    end_word();
    if (kind == Ascii::kPunctuation) visit(std::string_view(&c, 1), 1);
  }
  end_word();
}

}  // namespace

std::u32string normalised(std::u32string_view text, const Normalisation& normalisation) {
  std::u32string out(text);
  if (normalisation.clean) out = cleaned(out);
  if (normalisation.chinese) out = with_chinese_apart(out);
  if (normalisation.strip_accents) {
    out = decomposed(out);
    std::erase_if(out, is_mark);
  }
  if (!normalisation.lower_case) return out;
  std::u32string lower;
  lower.reserve(out.size());
  for (const char32_t c : out) put_lower(c, lower);
  return lower;
}

void each_word(std::string_view text, const Normalisation& normalisation,
               const WordVisitor& visit) {
  if (std::all_of(text.begin(), text.end(),
                  [](char c) { return static_cast<unsigned char>(c) < kAscii; })) {
    each_ascii_word(text, normalisation, visit);
    return;
  }
  const std::u32string all = normalised(metrics::decode_utf8(text), normalisation);
  const std::u32string_view view = all;
  const auto visit_part = [&](size_t from, size_t to) {
    if (to > from) visit(metrics::encode_utf8(view.substr(from, to - from)), to - from);
  };
  size_t start = 0;
  for (size_t i = 0; i < view.size(); ++i) {
    const bool blank = is_blank(view[i]);
    if (!blank && !is_punctuation(view[i])) continue;
    visit_part(start, i);
    if (!blank) visit_part(i, i + 1);
    start = i + 1;
  }
  visit_part(start, view.size());
}

}  // namespace fovea::text
