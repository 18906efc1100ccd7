#include "systems/multi_head/sentences.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "data/files/file.h"
#include "data/formats/text.h"

namespace fovea::systems::multi_head {
namespace {

int64_t stem_id(std::string_view stem) {
  int64_t id = kUnknown;
  for (const auto* list : {&kNouns, &kVerbs, &kOthers}) {
    for (const std::string& word : *list) {
      ++id;
      if (word == stem) return id;
    }
  }
  return kUnknown;
}

}  // namespace

Sentence sentence_of(const std::vector<std::string>& words) {
  Sentence out;
  out.words = words;
  for (const std::string& word : words) {
    const bool doer = word.ends_with("-a"), done = word.ends_with("-o");
    out.stems.push_back(
        stem_id(doer || done ? std::string_view(word).substr(0, word.size() - 2) : word));
    out.suffixes.push_back(doer ? kDoer : done ? kDoneTo : kNone);
  }
  return out;
}

Sentence draw(data::Random& random) {
  const std::array<int64_t, 3> answers = {static_cast<int64_t>(random.below(kNouns.size())),
                                          static_cast<int64_t>(random.below(kVerbs.size())),
                                          static_cast<int64_t>(random.below(kNouns.size()))};
  std::vector<std::pair<std::string, int>> words = {
      {kNouns[static_cast<size_t>(answers[0])] + "-a", 0},
      {kVerbs[static_cast<size_t>(answers[1])], 1},
      {kNouns[static_cast<size_t>(answers[2])] + "-o", 2}};
  for (uint64_t n = random.below(4); n > 0; --n) words.emplace_back(random.choice(kOthers), -1);
  random.shuffle(words);
  std::vector<std::string> texts;
  for (const auto& word : words) texts.push_back(word.first);
  Sentence out = sentence_of(texts);
  out.answers = answers;
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i].second >= 0)
      out.places[static_cast<size_t>(words[i].second)] = static_cast<int64_t>(i);
  }
  return out;
}

void read_sentences(const std::string& path, std::vector<Sentence>& to) {
  const std::string text = data::read_file(path);
  data::each_line(std::string_view(text), path, [&](size_t line, std::string_view content) {
    Sentence sentence = sentence_of(data::words(content));
    for (size_t i = 0; i < sentence.words.size(); ++i) {
      const int64_t suffix = sentence.suffixes[i], stem = sentence.stems[i] - kUnknown - 1;
      const auto nouns = static_cast<int64_t>(kNouns.size()),
                 verbs = static_cast<int64_t>(kVerbs.size());
      const bool noun = stem >= 0 && stem < nouns, verb = stem >= nouns && stem < nouns + verbs;
      const size_t slot = noun && suffix == kDoer     ? 0
                          : verb && suffix == kNone   ? 1
                          : noun && suffix == kDoneTo ? 2
                                                      : kSlots.size();
      if (slot == kSlots.size()) continue;
      sentence.answers[slot] = noun ? stem : stem - nouns;
      sentence.places[slot] = static_cast<int64_t>(i);
    }
    for (size_t slot = 0; slot < kSlots.size(); ++slot)
      if (sentence.places[slot] < 0)
        throw data::FileError(path, line,
                              fmt::format("no answer to '{}', expected a noun with -a, a verb "
                                          "and a noun with -o, found {}",
                                          kSlots[slot], data::shown(content)));
    to.push_back(std::move(sentence));
  });
}

}  // namespace fovea::systems::multi_head
