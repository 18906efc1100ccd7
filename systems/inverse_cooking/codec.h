// A recipe as numbers of words: the title, a mark, a step, a mark, … the last step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/vocabulary.h"
#include "data/recipes.h"

namespace fovea::systems::inverse_cooking {

using Ids = std::vector<int64_t>;

// A title and its steps.
struct Told {
  std::string title;
  std::vector<std::string> steps;
};

class Codec {
 public:
  Codec() = default;
  // Words that occur `least_count` times or more in these recipes.
  Codec(const std::vector<data::Recipe>& recipes, int64_t least_count);
  Codec(const std::string& text, const std::string& path);

  std::string text() const { return vocabulary_.text(); }
  int64_t words() const { return vocabulary_.size(); }
  const std::string& word(int64_t id) const { return vocabulary_.word(id); }
  bool is_mark(int64_t id) const { return id == mark_; }

  // Lower-cased words; without the end.
  Ids ids(const data::Recipe& recipe) const;
  Told told(const Ids& ids) const;

 private:
  data::Vocabulary vocabulary_;
  int64_t mark_ = data::kUnk;
};

// The places of the ingredients that a recipe's words name, as numbers in `names`: for each word -1, or
// the ingredient it is the last word of. Longer names win.
Ids named_in(const std::vector<std::string>& words, const std::vector<std::string>& names);

}  // namespace fovea::systems::inverse_cooking
