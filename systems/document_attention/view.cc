#include "systems/document_attention/view.h"

#include <fmt/format.h>

#include "text/generate.h"
#include "text/task.h"

namespace fovea::systems::document_attention {

// One sentence with a question about each of its two aspects: the menu of the picture switches
// between them.
std::vector<explain::Explanation> pictures(text::TextTask& task) {
  if (task.own_data()) return {};
  const text::Corpus corpus = text::generate_aspects(7);
  for (const text::Document& document : corpus.documents) {
    if (!document.mixed) continue;
    const std::vector<std::string> words =
        text::tokeniser_named("spaces")->split(document.texts[0]);
    if (!task.vocabulary().has(words[1])) return {};  // the run read other text
    explain::Explanation both;
    std::string outcome;
    for (const size_t place :
         {size_t{1}, size_t{6}}) {  // "the FOOD was great but the SERVICE was …"
      text::Document asked = document;
      asked.aspect = words[place];
      asked.label.clear();
      asked.truth_words.clear();
      explain::Explanation one =
          task.picture(asked, "Toggle the aspect: the same sentence, asked twice");
      outcome += fmt::format("{}{}: {}", outcome.empty() ? "" : "; ", asked.aspect, one.outcome);
      if (place == 1) {
        both = std::move(one);
        both.title = "Toggle the aspect: the same sentence, asked twice";
        both.heads = {"aspect", {asked.aspect}};
      } else {
        both.heads.names.push_back(asked.aspect);
        one.maps[0].head = 1;
        both.maps.push_back(std::move(one.maps[0]));
      }
    }
    both.outcome = outcome;
    return {both};
  }
  return {};
}

}  // namespace fovea::systems::document_attention
