#include "data/pictures/question_codec.h"

#include <algorithm>

#include "data/formats/stories.h"

namespace fovea::data {

QuestionCodec::QuestionCodec(const PictureQuestions& set, int64_t most_answers) {
  std::vector<std::vector<std::string>> questions, answers;
  for (const int64_t i : set.splits.train) {
    const PictureQuestion& one = set.questions[static_cast<size_t>(i)];
    questions.push_back(story_words(one.question));
    answers.push_back({commonest(one.answers)});
  }
  vocabulary_ = Vocabulary::of(questions, {});
  const Vocabulary listed = Vocabulary::of(answers, {.most_words = most_answers});
  for (int64_t id = kEos + 1; id < listed.size(); ++id) answers_.push_back(listed.word(id));
}

QuestionCodec::Ids QuestionCodec::ids(const std::string& question) const {
  Ids out = vocabulary_.ids(story_words(question));
  if (out.empty()) out.push_back(kUnk);
  return out;
}

int64_t QuestionCodec::label(const PictureQuestion& question) const {
  const auto found = std::find(answers_.begin(), answers_.end(), commonest(question.answers));
  return found == answers_.end() ? -1 : found - answers_.begin();
}

std::vector<std::string> QuestionCodec::unknown(const std::string& question) const {
  std::vector<std::string> out;
  for (const std::string& word : story_words(question))
    if (!vocabulary_.has(word)) out.push_back(word);
  return out;
}

}  // namespace fovea::data
