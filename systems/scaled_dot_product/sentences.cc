#include "systems/scaled_dot_product/sentences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/files/limits.h"
#include "data/formats/text.h"

namespace fovea::systems::scaled_dot_product {
namespace {

const std::vector<std::string> kVerbs = {"cross", "enter", "leave", "see", "like"};
const std::vector<std::string> kStates = {"tired", "afraid", "hungry", "late", "slow"};
const std::vector<std::string> kQualities = {"wide", "narrow", "muddy", "steep", "crowded"};

bool among(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}
int64_t place_of(const std::vector<std::string>& list, const std::string& word) {
  return std::find(list.begin(), list.end(), word) - list.begin();
}

// Of three orders of words, each with "it was too" and a word that may decide what it means.
std::vector<std::string> ordered(uint64_t order, const std::string& animal, const std::string& verb,
                                 const std::string& place, const std::string& state) {
  if (order == 0)
    return {"the", animal, "did", "not", verb, "the", place, "because", "it", "was", "too", state};
  if (order == 1)
    return {"because", "it", "was", "too", state, "the", animal, "did", "not", verb, "the", place};
  return {"the", place, "was", "what", "the", animal, "did",
          "not", verb,  "for", "it",   "was", "too",  state};
}

// The living thing, or the place if the word after "too" is said of places; -1 if there is none.
int64_t meant_by(Meaning meaning, const std::vector<std::string>& words) {
  const auto too = std::find(words.begin(), words.end(), "too");
  const bool of_places = meaning == Meaning::kContext && too != words.end() &&
                         too + 1 != words.end() && among(kQualities, *(too + 1));
  for (size_t i = words.size(); i-- > 0;)
    if (among(of_places ? kPlaces : kAnimals, words[i])) return static_cast<int64_t>(i);
  return -1;
}

// A word that is said of places before the living thing, or of living things before the place:
// beside it the words alone, without their order, do not tell what is meant.
void mislead(std::vector<std::string>& words, const std::string& before, const std::string& word) {
  words.insert(std::find(words.begin(), words.end(), before), word);
}

Sentence finished(Meaning meaning, std::vector<std::string> words) {
  Sentence out;
  out.words = std::move(words);
  out.asks = place_of(out.words, "it");
  out.meant = meant_by(meaning, out.words);
  out.answer = place_of(answers(meaning),
                        out.meant < 0 ? "nobody" : out.words[static_cast<size_t>(out.meant)]);
  return out;
}

}  // namespace

Meaning meaning_of(const std::string& name) {
  return name == "context" ? Meaning::kContext : Meaning::kLiving;
}

const std::vector<std::string>& answers(Meaning meaning) {
  const auto listed = [](std::vector<std::string> names, const std::vector<std::string>& more) {
    names.insert(names.end(), more.begin(), more.end());
    names.emplace_back("nobody");
    return names;
  };
  static const std::vector<std::string> living = listed(kAnimals, {}),
                                        all = listed(kAnimals, kPlaces);
  return meaning == Meaning::kLiving ? living : all;
}

Sentence draw(Meaning meaning, data::Random& random) {
  const uint64_t number = random.below(kAnimals.size() + 1);
  const bool nobody = number == kAnimals.size();
  const std::string animal = nobody ? random.choice(kPlaces) : kAnimals[number],
                    place = random.choice(kPlaces);
  const std::string verb = random.choice(kVerbs);
  if (meaning == Meaning::kLiving) {
    const std::string state = random.choice(kStates);
    return finished(meaning, ordered(random.below(3), animal, verb, place, state));
  }
  // Nobody is tired where two places are named; which of two places is wide could not be told.
  const bool of_place = !nobody && random.below(2) == 0;
  std::vector<std::string> words =
      ordered(random.below(3), animal, verb, place,
              of_place ? random.choice(kQualities) : random.choice(kStates));
  if (random.below(2) == 0)
    mislead(words, of_place ? animal : place,
            of_place ? random.choice(kStates) : random.choice(kQualities));
  return finished(meaning, std::move(words));
}

Sentence parsed(Meaning meaning, std::string_view text, const std::string& name, size_t line) {
  std::vector<std::string> words = data::words(data::lower_ascii(text));
  if (!among(words, "it"))
    throw data::FileError(
        name, line,
        fmt::format("expected a sentence with the word 'it', found {}", data::shown(text)));
  if (words.size() > data::limit(data::Limit::kSentence))
    throw data::FileError(name, line, data::beyond(data::Limit::kSentence, words.size()));
  return finished(meaning, std::move(words));
}

std::vector<Sentence> read_sentences(Meaning meaning, const std::string& path) {
  std::vector<Sentence> sentences;
  const std::vector<std::string>& known = answers(meaning);
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    const size_t tab = content.find('\t');
    if (tab == std::string_view::npos)
      throw data::FileError(
          path, line, fmt::format("expected whom<TAB>sentence, found {}", data::shown(content)));
    Sentence sentence = parsed(meaning, content.substr(tab + 1), path, line);
    const std::string whom(content.substr(0, tab));
    const bool nobody = whom == known.back();
    if (!among(known, whom) || (!nobody && !among(sentence.words, whom)))
      throw data::FileError(
          path, line,
          fmt::format("{} is meant, expected nobody or one of {} that stands in the sentence",
                      data::shown(whom), fmt::join(known.begin(), known.end() - 1, ", ")));
    sentence.answer = place_of(known, whom);
    sentence.meant = nobody ? -1 : place_of(sentence.words, whom);
    sentences.push_back(std::move(sentence));
  });
  return sentences;
}

}  // namespace fovea::systems::scaled_dot_product
