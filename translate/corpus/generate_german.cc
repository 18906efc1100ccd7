// English to German from a small grammar: gender and case of the articles, participles at the end,
// verbs last after "weil". A sentence has one to three clauses, so that lengths differ much.
#include <array>

#include "translate/corpus/corpus.h"
#include "translate/corpus/generated.h"

// A namespace of its own: the reordered language has words by the same names.
namespace fovea::translate::german {
namespace {

using data::Random;

enum Gender : uint8_t { kMasculine, kFeminine, kNeuter };
enum class Case : uint8_t { kNominative, kAccusative };
enum class Order : uint8_t { kVerbSecond, kVerbLast };

struct Noun {
  const char *english, *german;
  Gender gender;
};
// Those that act come first.
constexpr size_t kActors = 8;
constexpr std::array<Noun, 20> kNouns = {
    {{"dog", "Hund", kMasculine},      {"cat", "Katze", kFeminine},
     {"bird", "Vogel", kMasculine},    {"child", "Kind", kNeuter},
     {"king", "König", kMasculine},    {"woman", "Frau", kFeminine},
     {"horse", "Pferd", kNeuter},      {"baker", "Bäcker", kMasculine},
     {"house", "Haus", kNeuter},       {"tree", "Baum", kMasculine},
     {"river", "Fluss", kMasculine},   {"book", "Buch", kNeuter},
     {"stone", "Stein", kMasculine},   {"boat", "Boot", kNeuter},
     {"garden", "Garten", kMasculine}, {"letter", "Brief", kMasculine},
     {"door", "Tür", kFeminine},       {"town", "Stadt", kFeminine},
     {"window", "Fenster", kNeuter},   {"tower", "Turm", kMasculine}}};

struct Adjective {
  const char *english, *stem;
};
constexpr std::array<Adjective, 10> kAdjectives = {{{"old", "alt"},
                                                    {"red", "rot"},
                                                    {"small", "klein"},
                                                    {"cold", "kalt"},
                                                    {"green", "grün"},
                                                    {"quiet", "still"},
                                                    {"heavy", "schwer"},
                                                    {"young", "jung"},
                                                    {"brave", "mutig"},
                                                    {"big", "groß"}}};

struct Verb {
  const char *english, *participle, *german, *german_participle;
};
constexpr std::array<Verb, 10> kVerbs = {{{"sees", "seen", "sieht", "gesehen"},
                                          {"finds", "found", "findet", "gefunden"},
                                          {"loves", "loved", "liebt", "geliebt"},
                                          {"paints", "painted", "malt", "gemalt"},
                                          {"carries", "carried", "trägt", "getragen"},
                                          {"hears", "heard", "hört", "gehört"},
                                          {"draws", "drawn", "zeichnet", "gezeichnet"},
                                          {"holds", "held", "hält", "gehalten"},
                                          {"builds", "built", "baut", "gebaut"},
                                          {"guards", "guarded", "bewacht", "bewacht"}}};

// "the old dog": der alte Hund, den alten Hund.
std::vector<Word> noun_phrase(Random& random, Builder& builder, Case in) {
  const bool object = in == Case::kAccusative;
  const Noun& noun = kNouns[random.below(object ? kNouns.size() : kActors)];
  constexpr std::array<const char*, 3> kSubject = {"der", "die", "das"},
                                       kObject = {"den", "die", "das"};
  std::vector<Word> out = {{builder.source("the"), {(object ? kObject : kSubject)[noun.gender]}}};
  if (random.below(2) == 0) {
    const Adjective& adjective = kAdjectives[random.below(kAdjectives.size())];
    const char* ending = object && noun.gender == kMasculine ? "en" : "e";
    out.push_back({builder.source(adjective.english), {std::string(adjective.stem) + ending}});
  }
  out.push_back({builder.source(noun.english), {noun.german}});
  out.front().also = out.back().position;  // whose gender the article has
  return out;
}

// The finite verb is second in a clause and last after "weil"; the participle is last, or before it.
void clause(Random& random, Builder& builder, Order order) {
  const auto put = [&](const std::vector<Word>& words) {
    for (const Word& word : words) {
      builder.target(word.position, word.target);
      if (word.also >= 0) builder.also(word.also);
    }
  };
  const std::vector<Word> subject = noun_phrase(random, builder, Case::kNominative);
  const Verb& verb = kVerbs[random.below(kVerbs.size())];
  std::vector<Word> finite, last;
  if (random.below(2) == 0) {
    finite = {{builder.source("has"), {"hat"}}};
    last = {{builder.source(verb.participle), {verb.german_participle}}};
  } else {
    finite = {{builder.source(verb.english), {verb.german}}};
  }
  const std::vector<Word> object = noun_phrase(random, builder, Case::kAccusative);
  put(subject);
  if (order == Order::kVerbSecond) put(finite);
  put(object);
  put(last);
  if (order == Order::kVerbLast) put(finite);
}

Pair make_pair(Random& random) {
  Builder builder;
  clause(random, builder, Order::kVerbSecond);
  for (uint64_t more = random.below(3); more > 0; --more) {
    const bool because = random.below(2) == 0;
    builder.target(builder.source(because ? "because" : "and"), {because ? "weil" : "und"});
    clause(random, builder, because ? Order::kVerbLast : Order::kVerbSecond);
  }
  return builder.done();
}

}  // namespace
}  // namespace fovea::translate::german

namespace fovea::translate {

Corpus generate_german(uint64_t seed) { return make_corpus(seed, 38, german::make_pair); }

}  // namespace fovea::translate
