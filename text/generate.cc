#include "text/generate.h"

#include <algorithm>
#include <functional>

#include "data/random.h"

namespace fovea::text {
namespace {

using data::Random;
using List = std::vector<std::string>;

const List kPolar[2] = {
    {"awful",    "bad",   "bland", "boring", "cheap", "clumsy",   "cold",
     "dreadful", "dull",  "flat",  "grim",   "lazy",  "lame",     "poor",
     "sloppy",   "stale", "tired", "ugly",   "weak",  "worthless"},
    {"brilliant", "bright", "charming", "clever",   "delightful", "elegant",  "excellent",
     "fine",      "fresh",  "funny",    "good",     "great",      "lively",   "lovely",
     "moving",    "rich",   "smart",    "splendid", "warm",       "wonderful"}};
const List kThings = {"acting", "cast",  "camera", "comedy", "costume", "dialogue", "drama",
                      "ending", "film",  "hero",   "humour", "music",   "opening",  "pace",
                      "plot",   "scene", "score",  "script", "story",   "villain"};
const List kAspects = {"food",   "service", "price", "room",    "view",   "music",   "parking",
                       "coffee", "dessert", "staff", "kitchen", "menu",   "terrace", "wine",
                       "bread",  "bar",     "decor", "lunch",   "dinner", "location"};
const List kPeople = {"teacher", "doctor", "farmer",  "driver", "painter", "lawyer", "sailor",
                      "student", "baker",  "soldier", "widow",  "clerk",   "pilot",  "nurse",
                      "singer",  "guard",  "tailor",  "writer", "banker",  "child"};
const List kDeeds = {"meets", "follows", "finds",   "calls",  "visits",  "leaves", "helps",
                     "joins", "watches", "answers", "drives", "teaches", "phones", "expects",
                     "asks",  "names",   "greets",  "passes", "seeks",   "hires"};
const List kPlaces = {"house",  "city",   "harbour", "village", "school",  "station", "market",
                      "church", "office", "garden",  "street",  "factory", "library", "kitchen",
                      "forest", "island", "hotel",   "prison",  "museum",  "farm"};

const char* name_of(int label) { return label ? "positive" : "negative"; }

Corpus fill(uint64_t seed, uint64_t purpose, const std::function<Document(Random&)>& make) {
  Random random(data::mix(seed, purpose));
  Corpus corpus;
  corpus.splits = data::in_order(data::kGenerated);
  for (int64_t i = 0; i < data::kGenerated.all(); ++i) corpus.documents.push_back(make(random));
  corpus.splits.keys = keys_of(corpus.documents);
  return corpus;
}

// Clauses about different things; clause `negated` (-1: none) says the opposite of its adjective.
Document clauses(Random& random, int count, int negated) {
  List things = kThings;
  random.shuffle(things);
  std::string text;
  int positive = 0;
  for (int i = 0; i < count; ++i) {
    const int polarity = static_cast<int>(random.below(2));
    if (i > 0) text += i + 1 == count ? " and " : " , ";
    text += "the " + things[static_cast<size_t>(i)] + " was " + (i == negated ? "not " : "") +
            (random.below(3) == 0 ? "really " : "") + random.choice(kPolar[polarity]);
    positive += i == negated ? 1 - polarity : polarity;
  }
  Document out;
  out.label = name_of(2 * positive > count);
  out.texts = {text};
  return out;
}

}  // namespace

Corpus generate_reviews(uint64_t seed) {
  return fill(seed, 0x5E7, [](Random& random) {
    const int count = random.below(2) ? 3 : 1;
    return clauses(
        random, count,
        random.below(10) == 0 ? static_cast<int>(random.below(static_cast<uint64_t>(count))) : -1);
  });
}

Corpus generate_negation(uint64_t seed) {
  return fill(seed, 0x5E8, [](Random& random) {
    const int meant = static_cast<int>(random.below(2));
    const uint64_t dice = random.below(10);
    const bool both = dice >= 8, first = random.below(2);
    const bool negated[2] = {both || (dice >= 4 && first),
                             both || (dice >= 4 && !first)};  // none 4, one 4, both 2 of ten
    List things = kThings;
    random.shuffle(things);
    Document out;
    out.label = name_of(meant);
    out.texts = {""};
    for (size_t i = 0; i < 2; ++i)
      out.texts[0] += (i ? " and the " : "the ") + things[i] + " was " +
                      (negated[i] ? "not " : "") + (random.below(3) == 0 ? "really " : "") +
                      random.choice(kPolar[negated[i] ? 1 - meant : meant]);
    return out;
  });
}

Corpus generate_aspects(uint64_t seed) {
  return fill(seed, 0x5EB, [](Random& random) {
    List aspects = kAspects;
    random.shuffle(aspects);
    const int first = static_cast<int>(random.below(2)), second = static_cast<int>(random.below(2));
    const int asked = static_cast<int>(random.below(2));
    Document out;
    // Always "but": an "and" where they agree would tell the second clause's answer from the first.
    out.texts = {"the " + aspects[0] + " was " + random.choice(kPolar[first]) + " but the " +
                 aspects[1] + " was " + random.choice(kPolar[second])};
    out.aspect = aspects[static_cast<size_t>(asked)];
    out.label = name_of(asked ? second : first);
    out.mixed = first != second;
    for (int32_t i = 0; i < 4; ++i)
      out.truth_words.push_back(asked * 5 +
                                i);  // "the food was great" is four words, "but" the fifth
    return out;
  });
}

Corpus generate_hidden(uint64_t seed) {
  return fill(seed, 0x5EC, [](Random& random) {
    const int label = static_cast<int>(random.below(2));
    const size_t facts = 5 + random.below(5), polar = 1 + random.below(3);
    std::vector<int> hides(facts + polar, 0);
    std::fill_n(hides.begin(), polar, 1);
    random.shuffle(hides);
    Document out;
    out.label = name_of(label);
    for (const int hidden : hides) {
      if (hidden) out.truth_sentences.push_back(static_cast<int32_t>(out.texts.size()));
      out.texts.push_back(
          hidden ? "the " + random.choice(kThings) + " was " + (random.below(2) ? "really " : "") +
                       random.choice(kPolar[label]) + " ."
                 : "the " + random.choice(kPeople) + " " + random.choice(kDeeds) + " the " +
                       random.choice(kPeople) + " in the " + random.choice(kPlaces) + " .");
    }
    return out;
  });
}

std::vector<List> hidden_slots() {
  List adjectives = kPolar[0];
  adjectives.insert(adjectives.end(), kPolar[1].begin(), kPolar[1].end());
  return {adjectives, kThings, kPeople, kDeeds, kPlaces};
}

}  // namespace fovea::text
