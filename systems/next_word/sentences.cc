#include "systems/next_word/sentences.h"

#include <array>

namespace fovea::systems::next_word {
namespace {

// The verb decides its object.
struct Deed {
  const char *verb, *particle, *thing;
};
constexpr std::array<Deed, 20> kDeeds = {
    {{"waited", "for", "train"},   {"opened", "", "door"},      {"listened", "to", "music"},
     {"drank", "", "tea"},         {"climbed", "", "mountain"}, {"looked", "at", "picture"},
     {"paid", "for", "ticket"},    {"read", "", "book"},        {"swam", "in", "lake"},
     {"slept", "in", "bed"},       {"wrote", "to", "editor"},   {"sang", "in", "choir"},
     {"fed", "", "horse"},         {"drove", "", "car"},        {"knocked", "at", "gate"},
     {"cooked", "", "soup"},       {"asked", "for", "bill"},    {"played", "", "piano"},
     {"shouted", "at", "referee"}, {"watered", "", "garden"}}};
const std::vector<std::string> kDays = {"today", "yesterday", "often", "sometimes", "tonight"};
const std::vector<std::string> kPersons = {"she",   "he",    "they", "anna",       "the teacher",
                                           "peter", "maria", "we",   "the old man"};
const std::vector<std::string> kManners = {"quietly", "again",       "happily",    "slowly",
                                           "alone",   "after lunch", "in silence", "before noon"};

void add(std::vector<std::string>& words, const std::string& text) {
  for (size_t from = 0; from < text.size();) {
    const size_t blank = std::min(text.find(' ', from), text.size());
    if (blank > from) words.push_back(text.substr(from, blank - from));
    from = blank + 1;
  }
}

}  // namespace

Sentence draw(data::Random& random) {
  const Deed& deed = kDeeds[random.below(kDeeds.size())];
  Sentence out;
  if (random.below(2) == 0) add(out.words, random.choice(kDays));
  add(out.words, random.choice(kPersons));
  out.decides = static_cast<int64_t>(out.words.size());
  add(out.words, deed.verb);
  for (uint64_t n = random.below(4); n > 0; --n) add(out.words, random.choice(kManners));
  add(out.words, deed.particle);
  add(out.words, "the");
  add(out.words, deed.thing);
  return out;
}

Sentence sentence_of(std::vector<std::string> words) {
  Sentence out{.words = std::move(words)};
  for (size_t i = 0; i < out.words.size(); ++i)
    for (const Deed& deed : kDeeds)
      if (out.words[i] == deed.verb) {
        if (out.decides >= 0) return {.words = std::move(out.words)};  // two: neither decides alone
        out.decides = static_cast<int64_t>(i);
      }
  return out;
}

}  // namespace fovea::systems::next_word
