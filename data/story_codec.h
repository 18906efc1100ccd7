// Stories, questions and answers as numbers of words, with a vocabulary learnt from the training part.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/story_set.h"
#include "data/formats/vocabulary.h"

namespace fovea::data {

struct EncodedStories {
  std::vector<std::vector<std::vector<int64_t>>> lines;  // of each story
  std::vector<std::vector<int64_t>> questions;           // of each item
  std::vector<int64_t> answers;                          // of each item; -1: never seen in training
};

class StoryCodec {
 public:
  using Ids = std::vector<int64_t>;

  StoryCodec() = default;
  // An answer is one word, whatever it contains: "milk,football".
  explicit StoryCodec(const StorySet& set);
  StoryCodec(const std::string& text, const std::string& path)
      : vocabulary_(Vocabulary::parse(text, path)) {}
  std::string text() const { return vocabulary_.text(); }

  int64_t words() const { return vocabulary_.size(); }
  // Numbers of a text's words; 0, no word, for a word that was not in the training.
  Ids ids(std::string_view text) const;
  std::vector<Ids> ids(const std::vector<std::string>& lines) const;
  // An answer's position among the words that are not special; -1: not in the training.
  int64_t answer(std::string_view text) const;
  const std::string& answer_text(int64_t answer) const {
    return vocabulary_.word(answer + kFirstAnswer);
  }
  // Every answer there is, in their order.
  std::vector<std::string> answers() const {
    std::vector<std::string> all;
    for (int64_t i = 0; i < words() - kFirstAnswer; ++i) all.push_back(answer_text(i));
    return all;
  }
  static constexpr int64_t kFirstAnswer = kEos + 1;

  EncodedStories encoded(const StorySet& set) const;

  // The words of a question and the lines before it that were not in the training, each once.
  std::vector<std::string> unknown(const Story& story, const StoryQuestion& question) const;

 private:
  Vocabulary vocabulary_;
};

}  // namespace fovea::data
