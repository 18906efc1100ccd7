#include <algorithm>
#include <array>

#include "data/random.h"
#include "translate/corpus/corpus.h"
#include "translate/corpus/generated.h"

namespace fovea::translate {
namespace {

using data::Random;
using metrics::Link;

// ---- dates --------------------------------------------------------------------------------------

constexpr std::array<const char*, 12> kMonths = {"january",   "february", "march",    "april",
                                                 "may",       "june",     "july",     "august",
                                                 "september", "october",  "november", "december"};
constexpr std::array<const char*, 7> kDays = {"sunday",   "monday", "tuesday", "wednesday",
                                              "thursday", "friday", "saturday"};

struct Date {
  int year, month, day;
};

int days_in(int year, int month) {
  constexpr std::array<int, 12> kLengths = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return kLengths[static_cast<size_t>(month - 1)] + (month == 2 && leap ? 1 : 0);
}

// Sakamoto's method: 0 is Sunday.
int weekday(Date d) {
  constexpr std::array<int, 12> kShift = {0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4};
  const int y = d.month < 3 ? d.year - 1 : d.year;
  return (y + y / 4 - y / 100 + y / 400 + kShift[static_cast<size_t>(d.month - 1)] + d.day) % 7;
}

std::string two_digits(int n) { return (n < 10 ? "0" : "") + std::to_string(n); }

const char* ordinal(int day) {
  if (day / 10 == 1) return "th";
  return day % 10 == 1 ? "st" : day % 10 == 2 ? "nd" : day % 10 == 3 ? "rd" : "th";
}

// %Y year, %M month's name, %m its first three letters, %2 month in two digits, %d day, %D day in
// two digits, %o ordinal ending, %w weekday. Separators tell the numeric forms apart: dots put the
// day first, slashes the month.
constexpr std::array<const char*, 10> kForms = {
    "%d %M %Y", "%M %d, %Y", "%d%o of %M %Y", "%Y %M %d",      "%D.%2.%Y",
    "%2/%D/%Y", "%d %m %Y",  "%m %d, %Y",     "%w, %M %d, %Y", "%w %D %m %Y"};

enum Field { kYear, kMonth, kDay, kNone };

Pair make_date(Random& random) {
  Date date{static_cast<int>(1900 + random.below(200)), static_cast<int>(1 + random.below(12)), 1};
  date.day =
      1 + static_cast<int>(random.below(static_cast<uint64_t>(days_in(date.year, date.month))));
  Pair pair;
  std::vector<Field> fields;  // of each source character
  const auto put = [&](const std::string& text, Field field) {
    pair.source += text;
    fields.resize(pair.source.size(), field);
  };
  const std::string month = kMonths[static_cast<size_t>(date.month - 1)];
  for (const char* at = kForms[random.below(kForms.size())]; *at != 0; ++at) {
    if (*at != '%') {
      put(std::string(1, *at), kNone);
      continue;
    }
    switch (*++at) {
      case 'Y':
        put(std::to_string(date.year), kYear);
        break;
      case 'M':
        put(month, kMonth);
        break;
      case 'm':
        put(month.substr(0, 3), kMonth);
        break;
      case '2':
        put(two_digits(date.month), kMonth);
        break;
      case 'd':
        put(std::to_string(date.day), kDay);
        break;
      case 'D':
        put(two_digits(date.day), kDay);
        break;
      case 'o':
        put(ordinal(date.day), kNone);
        break;
      default:
        put(kDays[static_cast<size_t>(weekday(date))], kNone);
    }
  }
  pair.target =
      std::to_string(date.year) + '-' + two_digits(date.month) + '-' + two_digits(date.day);
  constexpr std::array<Field, 10> kTargetFields = {kYear,  kYear,  kYear, kYear, kNone,
                                                   kMonth, kMonth, kNone, kDay,  kDay};
  for (int32_t t = 0; t < 10; ++t) {
    for (int32_t s = 0; s < static_cast<int32_t>(fields.size()); ++s) {
      const Field field = kTargetFields[static_cast<size_t>(t)];
      if (field != kNone && fields[static_cast<size_t>(s)] == field)
        pair.links.possible.insert(Link{s, t});
    }
  }
  return pair;
}

// ---- the reordered language ---------------------------------------------------------------------

const std::vector<std::string> kNouns = {
    "dog",   "cat",  "house",  "tree",   "river", "bird",  "child", "king",   "song",   "book",
    "stone", "boat", "garden", "letter", "horse", "baker", "tower", "market", "window", "winter"};
const std::vector<std::string> kAdjectives = {
    "old",    "red",    "small", "happy", "cold",    "tall",   "green", "quiet",
    "broken", "bright", "heavy", "young", "distant", "wooden", "empty", "brave"};
const std::vector<std::string> kVerbs = {
    "sees",   "finds",  "loves", "builds", "follows",   "paints", "carries", "hears",
    "leaves", "guards", "sells", "opens",  "remembers", "draws",  "crosses", "holds"};
const std::vector<std::string> kAdverbs = {"slowly", "often", "never", "gladly",
                                           "again",  "alone", "today", "here"};

// The made-up word for a word: its letters turned about, its vowels shifted. Every third noun and
// every fourth verb has two.
std::vector<std::string> translations(const std::string& word, size_t index, size_t every) {
  std::string turned(word.rbegin(), word.rend());
  for (char& c : turned) {
    const size_t at = std::string("aeiou").find(c);
    if (at != std::string::npos) c = "ouiae"[at];
  }
  if (every > 0 && index % every == every - 1) return {turned + "a", "ve" + turned.substr(0, 2)};
  return {turned + "o"};
}

Word draw(Random& random, Builder& builder, const std::vector<std::string>& list, size_t every) {
  const size_t i = random.below(list.size());
  return {builder.source(list[i]), translations(list[i], i, every)};
}

// "the old red dog" -> noun, then the adjectives; the article has no translation.
void noun_phrase(Random& random, Builder& builder, std::vector<Word>& out) {
  builder.source("the");
  std::vector<Word> adjectives;
  for (uint64_t n = random.below(3); n > 0; --n)
    adjectives.push_back(draw(random, builder, kAdjectives, 0));
  out.push_back(draw(random, builder, kNouns, 3));
  out.insert(out.end(), adjectives.begin(), adjectives.end());
}

Pair make_reordered(Random& random) {
  Builder builder;
  std::vector<Word> target;
  noun_phrase(random, builder, target);
  const Word verb = draw(random, builder, kVerbs, 4);
  noun_phrase(random, builder, target);
  if (random.below(2) == 0) target.insert(target.begin(), draw(random, builder, kAdverbs, 0));
  target.push_back(verb);
  for (const Word& word : target) builder.target(word.position, word.target);
  return builder.done();
}

// ---- copy and reverse ---------------------------------------------------------------------------

Pair make_copy_reverse(Random& random) {
  Builder builder;
  const bool reverse = random.below(2) == 1;
  builder.source(reverse ? "reverse" : "copy");
  std::vector<Word> words;
  for (uint64_t n = 2 + random.below(9); n > 0; --n) {
    const std::string letter(1, static_cast<char>('a' + random.below(20)));
    words.push_back({builder.source(letter), {letter}});
  }
  if (reverse) std::reverse(words.begin(), words.end());
  for (const Word& word : words) builder.target(word.position, word.target);
  return builder.done();
}

}  // namespace

Corpus generate_dates(uint64_t seed) { return make_corpus(seed, 20, make_date); }
Corpus generate_reordered(uint64_t seed) { return make_corpus(seed, 22, make_reordered); }
// Four times as many: a model of this size learns four thousand lines by heart, but it should learn
// the rule.
Corpus generate_copy_reverse(uint64_t seed) {
  return make_corpus(seed, 27, make_copy_reverse, 4 * data::kGenerated.train);
}

}  // namespace fovea::translate
