#include "systems/document_attention/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::document_attention {

namespace {

constexpr size_t kTried = 60;

// "the FOOD was great but the SERVICE was awful": where the aspects stand, and what is said of them.
constexpr std::array<size_t, 2> kAspects = {1, 6}, kSaid = {3, 8};

// One sentence with a question about each of its two aspects: the menu of the picture switches
// between them.
explain::Explanation asked_twice(text::TextTask& task, const text::Document& document,
                                 const std::vector<std::string>& words) {
  const std::string title = "Toggle the aspect: the same sentence, asked twice";
  explain::Explanation both;
  std::string outcome;
  for (const size_t place : kAspects) {
    text::Document asked = document;
    asked.aspect = words[place];
    asked.label.clear();
    asked.truth_words.clear();
    explain::Explanation one = task.picture(asked, title);
    outcome += fmt::format("{}{}: {}", outcome.empty() ? "" : "; ", asked.aspect, one.outcome);
    if (place == kAspects.front()) {
      both = std::move(one);
      both.title = title;
      both.heads = {"aspect", {asked.aspect}};
    } else {
      both.heads.names.push_back(asked.aspect);
      one.maps[0].head = 1;
      both.maps.push_back(std::move(one.maps[0]));
    }
  }
  both.outcome = outcome;
  return both;
}

// How well it shows that the weights move to what is said of the aspect asked about: the smaller of
// the two weights there.
float shown_by(const explain::Explanation& both) {
  float least = 1;
  for (size_t i = 0; i < kSaid.size(); ++i)
    least = std::min(least, both.maps.at(i).dense.at(kSaid[i]));
  return least;
}

// Whether both words are praise or blame whatever they are said of: a price may well be cheap.
bool plain(const std::vector<std::string>& words) {
  constexpr std::array<std::string_view, 12> kDepends = {"bright", "cheap", "cold",   "flat",
                                                         "fresh",  "funny", "moving", "rich",
                                                         "smart",  "stale", "tired",  "warm"};
  return std::none_of(kSaid.begin(), kSaid.end(), [&](size_t at) {
    return std::find(kDepends.begin(), kDepends.end(), words.at(at)) != kDepends.end();
  });
}

}  // namespace

std::vector<explain::Explanation> pictures(text::TextTask& task) {
  if (task.own_data()) return {};
  const text::Corpus corpus = text::generate_aspects(7);
  constexpr float kShows = 0.5;  // more than half of the weight: plain words are worth more then
  std::vector<explain::Explanation> best;
  std::pair<bool, float> most;
  size_t tried = 0;
  for (const text::Document& document : corpus.documents) {
    if (!document.mixed) continue;
    const std::vector<std::string> words =
        text::tokeniser_named("spaces")->split(document.texts[0]);
    if (!task.vocabulary().has(words[1])) break;  // the run read other text
    explain::Explanation both = asked_twice(task, document, words);
    const std::pair shows{plain(words) && shown_by(both) > kShows, shown_by(both)};
    if (best.empty() || shows > most) {
      best = {std::move(both)};
      most = shows;
    }
    if (++tried == kTried) break;
  }
  return best;
}

}  // namespace fovea::systems::document_attention
