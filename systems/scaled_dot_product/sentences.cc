#include "systems/scaled_dot_product/sentences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/formats/text.h"

namespace fovea::systems::scaled_dot_product {
namespace {

const std::vector<std::string> kVerbs = {"cross", "enter", "leave", "see", "like"};
// A living thing is tired, a place is wide.
const std::vector<std::string> kStates = {"tired", "afraid", "hungry", "late", "slow"};
const std::vector<std::string> kShapes = {"wide", "narrow", "long", "dark", "steep"};

bool is_living(int64_t thing) { return thing < static_cast<int64_t>(kLiving); }

int64_t draw_living(data::Random& random) { return static_cast<int64_t>(random.below(kLiving)); }
int64_t draw_place(data::Random& random) {
  return static_cast<int64_t>(kLiving + random.below(kThings.size() - kLiving));
}

// Where a word stands; -1: nowhere.
int64_t place_of(const std::vector<std::string>& words, const std::string& word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? -1 : found - words.begin();
}

}  // namespace

// Somebody does not do something to a place. It is about somebody or about the place; or it is about
// somebody where only places are named: then nobody is meant.
Sentence draw(data::Random& random) {
  const uint64_t kind = random.below(5);  // two of five each, and one for nobody
  const bool about_place = kind >= 2 && kind < 4, nobody = kind == 4;
  const int64_t place = draw_place(random);
  int64_t somebody = nobody ? draw_place(random) : draw_living(random);
  while (somebody == place) somebody = draw_place(random);
  Sentence out;
  out.thing = nobody ? static_cast<int64_t>(kThings.size()) : about_place ? place : somebody;
  const std::string &who = kThings[static_cast<size_t>(somebody)],
                    &where = kThings[static_cast<size_t>(place)];
  const std::string verb = random.choice(kVerbs),
                    state = random.choice(about_place ? kShapes : kStates);
  switch (random.below(3)) {
    case 0:
      out.words = {"the", who,       "did", "not", verb,  "the",
                   where, "because", "it",  "was", "too", state};
      break;
    case 1:
      out.words = {"because", "it",  "was", "too", state, "the",
                   who,       "did", "not", verb,  "the", where};
      break;
    default:
      out.words = {"the", where, "was", "what", "the", who,   "did",
                   "not", verb,  "for", "it",  "was", "too", state};
  }
  out.asks = place_of(out.words, "it");
  if (!nobody) out.meant = place_of(out.words, kThings[static_cast<size_t>(out.thing)]);
  return out;
}

Sentence parsed(std::string_view text, const std::string& name, size_t line) {
  Sentence out;
  out.words = data::words(data::lower_ascii(text));
  const auto found = std::find(out.words.begin(), out.words.end(), "it");
  if (found == out.words.end())
    throw data::FileError(
        name, line,
        fmt::format("expected a sentence with the word 'it', found {}", data::shown(text)));
  out.asks = found - out.words.begin();
  // Its last words tell whether it is about a place or about somebody, where they are known.
  const auto about = [&](const std::vector<std::string>& ends) {
    return std::any_of(ends.begin(), ends.end(), [&](const std::string& end) {
      return place_of(out.words, end) >= 0;
    });
  };
  out.meant = -1;
  for (size_t i = 0; i < out.words.size(); ++i) {
    const auto thing = std::find(kThings.begin(), kThings.end(), out.words[i]) - kThings.begin();
    if (thing == static_cast<ptrdiff_t>(kThings.size())) continue;
    if (is_living(thing) ? about(kStates) : about(kShapes)) out.meant = static_cast<int64_t>(i);
  }
  return out;
}

std::vector<Sentence> read_sentences(const std::string& path) {
  std::vector<Sentence> sentences;
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    const size_t tab = content.find('\t');
    if (tab == std::string_view::npos)
      throw data::FileError(
          path, line, fmt::format("expected whom<TAB>sentence, found {}", data::shown(content)));
    Sentence sentence = parsed(content.substr(tab + 1), path, line);
    const std::string whom(content.substr(0, tab));
    sentence.thing = 0;
    while (answer(sentence.thing) != whom && answer(sentence.thing) != "nobody") ++sentence.thing;
    const auto place = std::find(sentence.words.begin(), sentence.words.end(), whom);
    if (answer(sentence.thing) != whom || (whom != "nobody" && place == sentence.words.end()))
      throw data::FileError(
          path, line,
          fmt::format("{} is meant, expected nobody or one of {} that stands in the sentence",
                      data::shown(whom), fmt::join(kThings, ", ")));
    sentence.meant = whom == "nobody" ? -1 : place - sentence.words.begin();
    sentences.push_back(std::move(sentence));
  });
  return sentences;
}

const std::string& answer(int64_t thing) {
  static const std::string nobody = "nobody";
  return thing < static_cast<int64_t>(kThings.size()) ? kThings[static_cast<size_t>(thing)]
                                                      : nobody;
}

}  // namespace fovea::systems::scaled_dot_product
