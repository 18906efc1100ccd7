// Stories and questions about them: bAbI's numbered lines (Weston et al. 2015), or JSON Lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::data {

struct StoryQuestion {
  int64_t seen = 0;                    // number of lines of the story before it
  std::string text = {}, answer = {};  // as written; empty if the question is only asked
  std::vector<int64_t> support = {};   // of the lines seen, from 0, in the file's order
};

struct Story {
  std::vector<std::string> lines;
  std::vector<StoryQuestion> questions;
};

// Takes lines as they come, in any of three forms:
//   2 Mary went to the kitchen.               bAbI's: the number 1 begins a new story
//   3 Where is Mary?<TAB>kitchen<TAB>2        a question, its answer, the numbers of the lines it rests on
//   Mary went to the kitchen.                 the same without numbers: a blank line ends the story
//   {"story": ["Mary went…"], "question": "Where is Mary?", "answer": "kitchen", "supporting_lines": [1]}
// A line with a tab, or one that ends in "?", is a question. FileError says what is wrong with one.
class StoryReader {
 public:
  // Stories are added to `into`, the newest last; earlier ones may be taken from it at any time.
  StoryReader(std::string name, std::vector<Story>& into) : name_(std::move(name)), into_(into) {}

  // Whether the line asked something: the last question of the last story.
  bool add(size_t number, std::string_view line);

 private:
  void add_json(size_t number, std::string_view line);
  bool add_text(size_t number, std::string_view line);
  void add_question(size_t number, std::string_view line);
  Story& begin();

  std::string name_;
  std::vector<Story>& into_;
  enum class Form { kNone, kNumbered, kPlain } form_ = Form::kNone;
  int64_t last_ = 0;  // number of the line last added to the story
  std::vector<int64_t>
      line_of_;  // for each number of the story, which of its lines; -1: a question
};

// At least one question, each with an answer.
std::vector<Story> read_stories(const std::string& path);
// As bAbI has it.
std::string babi_text(const std::vector<Story>& stories);

// Words in lower case without the punctuation at their ends.
std::vector<std::string> story_words(std::string_view text);

}  // namespace fovea::data
