#include "data/story_codec.h"

#include <algorithm>
#include <set>

#include "data/formats/text.h"

namespace fovea::data {

StoryCodec::StoryCodec(const StorySet& set) {
  std::vector<std::vector<std::string>> sentences;
  for (const FiledStory& one : set.stories) {
    if (one.split != Split::kTrain) continue;
    for (const std::string& line : one.story.lines) sentences.push_back(story_words(line));
    for (const StoryQuestion& question : one.story.questions) {
      sentences.push_back(story_words(question.text));
      sentences.push_back({lower_ascii(question.answer)});
    }
  }
  vocabulary_ = Vocabulary::of(sentences, {});
}

StoryCodec::Ids StoryCodec::ids(std::string_view text) const {
  Ids out = vocabulary_.ids(story_words(text));
  std::replace(out.begin(), out.end(), kUnk, kPad);
  return out;
}

std::vector<StoryCodec::Ids> StoryCodec::ids(const std::vector<std::string>& lines) const {
  std::vector<Ids> out;
  for (const std::string& line : lines) out.push_back(ids(line));
  return out;
}

int64_t StoryCodec::answer(std::string_view text) const {
  return std::max<int64_t>(vocabulary_.id(lower_ascii(text)) - kFirstAnswer, -1);
}

EncodedStories StoryCodec::encoded(const StorySet& set) const {
  EncodedStories out;
  for (const FiledStory& one : set.stories) {
    out.lines.push_back(ids(one.story.lines));
    for (const StoryQuestion& question : one.story.questions) {
      out.questions.push_back(ids(question.text));
      out.answers.push_back(answer(question.answer));
    }
  }
  return out;
}

std::vector<std::string> StoryCodec::unknown(const Story& story,
                                             const StoryQuestion& question) const {
  std::set<std::string> out;
  const auto look = [&](const std::string& text) {
    for (const std::string& word : story_words(text))
      if (!vocabulary_.has(word)) out.insert(word);
  };
  std::for_each_n(story.lines.begin(), question.seen, look);
  look(question.text);
  return {out.begin(), out.end()};
}

}  // namespace fovea::data
