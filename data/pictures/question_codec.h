// Questions about pictures as numbers of words, and answers as positions in a list. Both are learnt
// from the training split.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/formats/vocabulary.h"
#include "data/pictures/picture_questions.h"

namespace fovea::data {

class QuestionCodec {
 public:
  using Ids = std::vector<int64_t>;

  QuestionCodec() = default;
  // The list has the commonest answers, `most_answers` at most.
  QuestionCodec(const PictureQuestions& set, int64_t most_answers);
  QuestionCodec(const std::string& text, const std::string& path, std::vector<std::string> answers)
      : vocabulary_(Vocabulary::parse(text, path)), answers_(std::move(answers)) {}

  std::string text() const { return vocabulary_.text(); }
  const std::vector<std::string>& answers() const { return answers_; }
  const std::string& answer(int64_t label) const { return answers_[static_cast<size_t>(label)]; }
  int64_t words() const { return vocabulary_.size(); }

  // At least one number: a question without words is one unknown word.
  Ids ids(const std::string& question) const;
  // The position of its most frequent answer in the list; -1: not in it.
  int64_t label(const PictureQuestion& question) const;
  std::vector<std::string> unknown(const std::string& question) const;

 private:
  Vocabulary vocabulary_;
  std::vector<std::string> answers_;
};

}  // namespace fovea::data
