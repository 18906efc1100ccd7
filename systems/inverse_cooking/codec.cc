#include "systems/inverse_cooking/codec.h"

#include <algorithm>

#include "data/files/file.h"
#include "data/formats/text.h"

namespace fovea::systems::inverse_cooking {
namespace {

constexpr const char* kMark = "|";  // between the title and each step

std::vector<std::string> words_of(const data::Recipe& recipe) {
  std::vector<std::string> out = data::words(data::lower_ascii(recipe.title));
  for (const std::string& step : recipe.steps) {
    out.emplace_back(kMark);
    for (std::string& word : data::words(data::lower_ascii(step)))
      out.push_back(word == kMark ? "/" : std::move(word));
  }
  return out;
}

}  // namespace

Codec::Codec(const std::vector<data::Recipe>& recipes, int64_t least_count) {
  std::vector<std::vector<std::string>> sentences;
  for (const data::Recipe& one : recipes) sentences.push_back(words_of(one));
  // The mark is known even where no recipe has a step.
  for (int64_t i = 0; i < least_count; ++i) sentences.push_back({kMark});
  vocabulary_ = data::Vocabulary::of(sentences, {.least_count = least_count});
  mark_ = vocabulary_.id(kMark);
}

Codec::Codec(const std::string& text, const std::string& path)
    : vocabulary_(data::Vocabulary::parse(text, path)), mark_(vocabulary_.id(kMark)) {
  if (mark_ == data::kUnk)
    throw data::FileError(path, 0, "no word '|', expected the mark between steps");
}

Ids Codec::ids(const data::Recipe& recipe) const { return vocabulary_.ids(words_of(recipe)); }

Told Codec::told(const Ids& ids) const {
  Told out;
  std::string* part = &out.title;
  for (const int64_t id : ids) {
    if (id == mark_) {
      part = &out.steps.emplace_back();
      continue;
    }
    *part += (part->empty() ? "" : " ") + vocabulary_.word(id);
  }
  std::erase_if(out.steps, [](const std::string& step) { return step.empty(); });
  return out;
}

Ids named_in(const std::vector<std::string>& words, const std::vector<std::string>& names) {
  Ids out(words.size(), -1);
  std::vector<size_t> length(words.size());
  for (size_t name = 0; name < names.size(); ++name) {
    const std::vector<std::string> wanted = data::words(data::lower_ascii(names[name]));
    if (wanted.empty()) continue;
    for (size_t end = wanted.size(); end <= words.size(); ++end) {
      const size_t last = end - 1;
      if (wanted.size() <= length[last]) continue;
      if (!std::equal(wanted.begin(), wanted.end(),
                      words.begin() + static_cast<ptrdiff_t>(end - wanted.size())))
        continue;
      out[last] = static_cast<int64_t>(name);
      length[last] = wanted.size();
    }
  }
  return out;
}

}  // namespace fovea::systems::inverse_cooking
