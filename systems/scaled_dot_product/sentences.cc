#include "systems/scaled_dot_product/sentences.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/formats/text.h"

namespace fovea::systems::scaled_dot_product {
namespace {

const std::vector<std::string> kPlaces = {"street", "road",   "river", "field",
                                          "bridge", "square", "yard",  "track"};
const std::vector<std::string> kVerbs = {"cross", "enter", "leave", "see", "like"};
const std::vector<std::string> kStates = {"tired", "afraid", "hungry", "late", "slow"};

}  // namespace

Sentence draw(data::Random& random) {
  Sentence out;
  out.animal = static_cast<int64_t>(random.below(kAnimals.size() + 1));
  const bool nobody = out.animal == static_cast<int64_t>(kAnimals.size());
  const std::string animal =
                        nobody ? random.choice(kPlaces) : kAnimals[static_cast<size_t>(out.animal)],
                    place = random.choice(kPlaces);
  const std::string verb = random.choice(kVerbs), state = random.choice(kStates);
  switch (random.below(3)) {
    case 0:
      out.words = {"the", animal,    "did", "not", verb,  "the",
                   place, "because", "it",  "was", "too", state};
      break;
    case 1:
      out.words = {"because", "it",  "was", "too", state, "the",
                   animal,    "did", "not", verb,  "the", place};
      break;
    default:
      out.words = {"the", place, "was", "what", "the", animal, "did",
                   "not", verb,  "for", "it",   "was", "too",  state};
  }
  out.asks = std::find(out.words.begin(), out.words.end(), "it") - out.words.begin();
  if (!nobody)
    out.meant = std::find(out.words.begin(), out.words.end(), animal) - out.words.begin();
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
  out.meant = -1;
  for (size_t i = 0; i < out.words.size(); ++i)
    if (std::find(kAnimals.begin(), kAnimals.end(), out.words[i]) != kAnimals.end())
      out.meant = static_cast<int64_t>(i);
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
    sentence.animal = 0;
    while (answer(sentence.animal) != whom && answer(sentence.animal) != "nobody")
      ++sentence.animal;
    const auto place = std::find(sentence.words.begin(), sentence.words.end(), whom);
    if (answer(sentence.animal) != whom || (whom != "nobody" && place == sentence.words.end()))
      throw data::FileError(
          path, line,
          fmt::format("{} is meant, expected nobody or one of {} that stands in the sentence",
                      data::shown(whom), fmt::join(kAnimals, ", ")));
    sentence.meant = whom == "nobody" ? -1 : place - sentence.words.begin();
    sentences.push_back(std::move(sentence));
  });
  return sentences;
}

const std::string& answer(int64_t animal) {
  static const std::string nobody = "nobody";
  return animal < static_cast<int64_t>(kAnimals.size()) ? kAnimals[static_cast<size_t>(animal)]
                                                        : nobody;
}

}  // namespace fovea::systems::scaled_dot_product
