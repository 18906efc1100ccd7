#include "metrics/unicode.h"

#include <algorithm>

#include "metrics/unicode_tables.h"

namespace fovea::metrics {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

bool in_ranges(const Range* ranges, size_t n, char32_t c) {
  const Range* end = ranges + n;
  const Range* found =
      std::lower_bound(ranges, end, c, [](const Range& r, char32_t x) { return r.last < x; });
  return found != end && found->first <= c;
}

// Length of the sequence that `lead` starts, 0 if it starts none.
size_t sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

// Python's rule: a sigma that ends a word is written with its final form.
bool is_final_sigma(std::u32string_view text, size_t i) {
  const auto cased = [](char32_t c) {
    return lower(std::u32string(1, c))[0] != c || (c >= U'a' && c <= U'z') ||
           (c >= 0x3B1 && c <= 0x3C9);
  };
  const bool before = i > 0 && cased(text[i - 1]);
  const bool after = i + 1 < text.size() && cased(text[i + 1]);
  return before && !after;
}

char32_t lower_one(char32_t c) {
  if (c < 0x80) return c >= U'A' && c <= U'Z' ? c + 32 : c;
  const LowerRun* end = kLower + kLowerSize;
  const LowerRun* run =
      std::lower_bound(kLower, end, c, [](const LowerRun& r, char32_t x) { return r.last < x; });
  if (run == end || run->first > c || (c - run->first) % run->step != 0) return c;
  return static_cast<char32_t>(static_cast<int64_t>(c) + run->delta);
}

}  // namespace

std::u32string decode_utf8(std::string_view bytes) {
  std::u32string out;
  out.reserve(bytes.size());
  for (size_t i = 0; i < bytes.size();) {
    const auto byte = [&](size_t k) { return static_cast<unsigned char>(bytes[k]); };
    const size_t n = sequence_length(byte(i));
    if (n == 1) {
      out.push_back(byte(i++));
      continue;
    }
    bool good = n != 0 && i + n <= bytes.size();
    char32_t c = good ? byte(i) & (0xFFu >> (n + 1)) : 0;
    for (size_t k = 1; good && k < n; ++k) {
      good = (byte(i + k) & 0xC0) == 0x80;
      c = (c << 6) | (byte(i + k) & 0x3F);
    }
    good = good && !(n == 3 && (c < 0x800 || (c >= 0xD800 && c <= 0xDFFF))) &&
           !(n == 4 && (c < 0x10000 || c > 0x10FFFF));
    out.push_back(good ? c : kReplacement);
    i += good ? n : 1;
  }
  return out;
}

std::string encode_utf8(std::u32string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto put = [&](char32_t x) { out.push_back(static_cast<char>(x)); };
  for (const char32_t c : text) {
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xC0 | (c >> 6)), put(0x80 | (c & 0x3F));
    } else if (c < 0x10000) {
      put(0xE0 | (c >> 12)), put(0x80 | ((c >> 6) & 0x3F)), put(0x80 | (c & 0x3F));
    } else {
      put(0xF0 | (c >> 18)), put(0x80 | ((c >> 12) & 0x3F)), put(0x80 | ((c >> 6) & 0x3F)),
          put(0x80 | (c & 0x3F));
    }
  }
  return out;
}

bool is_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}
bool is_punctuation(char32_t c) { return in_ranges(kPunctuation, kPunctuationSize, c); }
bool is_symbol(char32_t c) { return in_ranges(kSymbol, kSymbolSize, c); }
bool is_number(char32_t c) { return in_ranges(kNumber, kNumberSize, c); }

std::u32string lower(std::u32string_view text) {
  std::u32string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 0x130) {
      out += U"i\u0307";  // the one character whose lower case is two
    } else if (text[i] == 0x3A3 && is_final_sigma(text, i)) {
      out.push_back(0x3C2);
    } else {
      out.push_back(lower_one(text[i]));
    }
  }
  return out;
}

std::vector<std::u32string> split(std::u32string_view text) {
  std::vector<std::u32string> words;
  for (size_t i = 0; i < text.size();) {
    while (i < text.size() && is_space(text[i])) ++i;
    size_t end = i;
    while (end < text.size() && !is_space(text[end])) ++end;
    if (end > i) words.emplace_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

std::u32string_view strip_right(std::u32string_view text) {
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace fovea::metrics
