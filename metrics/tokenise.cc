#include "metrics/tokenise.h"

#include "fovea/error.h"
#include "metrics/unicode.h"

namespace fovea::metrics {
namespace {

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_stop(char32_t c) { return c == U'.' || c == U','; }

// The characters that 13a always sets apart: {|}~ [\]^_` the range space to & ()*+ :;<=>?@ and /.
bool stands_alone(char32_t c) {
  return (c >= U'{' && c <= U'~') || (c >= U'[' && c <= U'`') || (c >= U' ' && c <= U'&') ||
         (c >= U'(' && c <= U'+') || (c >= U':' && c <= U'@') || c == U'/';
}

// Every c with `alone(c)` gets a space on both sides.
template <class Alone>
std::u32string set_apart(std::u32string_view text, Alone alone) {
  std::u32string out;
  out.reserve(text.size() * 2);
  for (const char32_t c : text) {
    if (alone(c)) {
      out += U' ', out += c, out += U' ';
    } else {
      out += c;
    }
  }
  return out;
}

enum class Insert { kAroundSecond, kAroundFirst };

// Where first(a) and second(b) hold for neighbours a b, puts spaces around one of them. Matches are
// found from the left and do not overlap, as a regular expression's are.
template <class First, class Second>
std::u32string separate_pairs(std::u32string_view text, First first, Second second, Insert insert) {
  std::u32string out;
  out.reserve(text.size() * 2);
  size_t i = 0;
  while (i < text.size()) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      if (insert == Insert::kAroundSecond) {
        out += text[i], out += U' ', out += text[i + 1], out += U' ';
      } else {
        out += U' ', out += text[i], out += U' ', out += text[i + 1];
      }
      i += 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (size_t at = text.find(from); at != std::u32string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

std::u32string tokenise_13a(std::u32string_view line) {
  std::u32string text(line);
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
  text = set_apart(U' ' + text + U' ', stands_alone);
  const auto no_digit = [](char32_t c) { return !is_digit(c); };
  text = separate_pairs(text, no_digit, is_stop, Insert::kAroundSecond);
  text = separate_pairs(text, is_stop, no_digit, Insert::kAroundFirst);
  return separate_pairs(
      text, is_digit, [](char32_t c) { return c == U'-'; }, Insert::kAroundSecond);
}

std::u32string tokenise_intl(std::u32string_view line) {
  const auto no_number = [](char32_t c) { return !is_number(c); };
  std::u32string text = separate_pairs(line, no_number, is_punctuation, Insert::kAroundSecond);
  text = separate_pairs(text, is_punctuation, no_number, Insert::kAroundFirst);
  return set_apart(text, is_symbol);
}

}  // namespace

Tokeniser parse_tokeniser(std::string_view name) {
  for (const Tokeniser t : {Tokeniser::k13a, Tokeniser::kIntl, Tokeniser::kNone}) {
    if (name == name_of(t)) return t;
  }
  throw InvalidArgument("tokenize: '" + std::string(name) + "', expected 13a, intl or none");
}

std::string_view name_of(Tokeniser tokeniser) {
  switch (tokeniser) {
    case Tokeniser::k13a:
      return "13a";
    case Tokeniser::kIntl:
      return "intl";
    case Tokeniser::kNone:
      break;
  }
  return "none";
}

std::vector<std::string> tokenise(std::u32string_view line, Tokeniser tokeniser) {
  std::u32string text(line);
  if (tokeniser == Tokeniser::k13a) text = tokenise_13a(line);
  if (tokeniser == Tokeniser::kIntl) text = tokenise_intl(line);
  std::vector<std::string> tokens;
  for (const std::u32string& word : split(text)) tokens.push_back(encode_utf8(word));
  return tokens;
}

}  // namespace fovea::metrics
