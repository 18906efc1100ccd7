// Stories with questions: bAbI's form, lines without numbers, JSON Lines, folders of tasks, and what
// is wrong with each.
#include "data/formats/stories.h"

#include <gtest/gtest.h>

#include "data/files/file.h"
#include "data/story_codec.h"
#include "data/story_set.h"
#include "tests/data/files.h"

namespace fovea::data {
namespace {

class Stories : public Files {
 protected:
  std::vector<Story> read(const std::string& text) const { return read_stories(write("s", text)); }
  std::string said(const std::string& text) const {
    try {
      read(text);
    } catch (const FileError& error) {
      return std::string(error.what()).substr((base_ / "s").string().size());
    }
    return "nothing";
  }
};

constexpr const char* kTwo =
    "1 Mary took the milk.\n2 Where is Mary?\tnowhere\n3 Mary went to the kitchen.\n"
    "4 Where is the milk?\tkitchen\t1 3\n1 John slept.\n2 Who slept?\tJohn\t1\n";

TEST_F(Stories, NumbersOfLinesCountQuestionsAndBeginAgainWithEachStory) {
  const auto stories = read(kTwo);
  ASSERT_EQ(stories.size(), 2u);
  EXPECT_EQ(stories[0].lines,
            (std::vector<std::string>{"Mary took the milk.", "Mary went to the kitchen."}));
  ASSERT_EQ(stories[0].questions.size(), 2u);
  EXPECT_EQ(stories[0].questions[0].seen, 1);
  EXPECT_TRUE(stories[0].questions[0].support.empty());
  EXPECT_EQ(stories[0].questions[1].support, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(stories[1].questions[0].answer, "John");
}

TEST_F(Stories, WhatIsWrittenIsReadBack) {
  EXPECT_EQ(babi_text(read(kTwo)),
            "1 Mary took the milk.\n2 Where is Mary?\tnowhere\t\n3 Mary went to the kitchen.\n"
            "4 Where is the milk?\tkitchen\t1 3\n1 John slept.\n2 Who slept?\tJohn\t1\n");
  EXPECT_EQ(babi_text(read(babi_text(read(kTwo)))), babi_text(read(kTwo)));
}

TEST_F(Stories, LinesWithoutNumbersAndJson) {
  const auto plain = read("Mary slept.\nWho slept?\tMary\t1\n\nJohn ran.\nWho ran?\tJohn\n");
  ASSERT_EQ(plain.size(), 2u);
  EXPECT_EQ(plain[0].questions[0].support, std::vector<int64_t>{0});
  const auto json = read(
      R"({"story": ["Mary slept.", "John ran."], "question": "Who ran?", "answer": "John", "supporting_lines": [2]})"
      "\n"
      R"({"story": [], "question": "Who?", "answer": "nobody"})"
      "\n");
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0].questions[0].support, std::vector<int64_t>{1});
  EXPECT_TRUE(json[1].lines.empty());
}

TEST_F(Stories, MistakesAreNamedWithTheirLine) {
  EXPECT_EQ(said("1 A.\n3 B?\tx\n"), ":2: line number 3, expected 2 or 1");
  EXPECT_EQ(said("2 A.\n"), ":1: line number 2, expected 1, which begins a story");
  EXPECT_EQ(said("1 A.\nB?\tx\n"), ":2: expected a line number, 2 or 1");
  EXPECT_EQ(said("1 A.\n2 B?\tx\t2\n"),
            ":2: supporting line 2, expected the number of a statement before the question");
  EXPECT_EQ(said("1 A.\n2 B?\tx\tone\n"), ":2: supporting line: expected an integer, found 'one'");
  EXPECT_EQ(said("1 A.\n2 B?\t\t1\n"), ":2: no words after the tab, expected an answer");
  EXPECT_EQ(said("1 A.\n2 B?\tx\t1\t1\n"),
            ":2: 4 fields, expected question, answer and supporting lines");
  EXPECT_EQ(said("1 A.\n2 B?\n"), ":2: a question without an answer, expected one after a tab");
  EXPECT_EQ(said("1 A.\n2\n"), ":2: no words after the line number");
  EXPECT_EQ(said("1 A.\n"), ": no question in it, expected at least one");
  EXPECT_EQ(said("{\"story\": 1}\n"),
            R"(:1: expected an object with "story", a list of lines, and "question")");
  EXPECT_EQ(said(R"({"story": ["a"], "question": "b", "answer": "c", "supporting_lines": [2]})"),
            ":1: supporting_lines: '2', expected 1 to 1");
  EXPECT_EQ(said(R"({"story": ["a\nb"], "question": "b", "answer": "c"})"),
            R"(:1: expected each line of "story" without tabs and line breaks)");
}

TEST_F(Stories, WordsLoseTheirPunctuationAndCapitals) {
  EXPECT_EQ(story_words("Where is \"Mary's\" milk, then?"),
            (std::vector<std::string>{"where", "is", "mary's", "milk", "then"}));
  EXPECT_TRUE(story_words(" . ? ").empty());
}

TEST_F(Stories, AFolderHasTasksAndOneWithoutTrainingIsLeftOut) {
  const std::string stories = "1 A b.\n2 Who?\tx\t1\n";
  std::string many;
  for (int i = 0; i < 40; ++i) many += "1 A b" + std::to_string(i) + ".\n2 Who?\tx\t1\n";
  write("qa10_ten_train.txt", many);
  write("qa10_ten_test.txt", stories);
  write("qa2_two_train.txt.gz", gzip(many));
  write("qa2_two_test.txt", stories);
  write("qa3_three_test.txt", stories);
  const StorySet set = read_story_set(base_.string(), {});
  EXPECT_EQ(set.tasks, (std::vector<std::string>{"qa2", "qa10"}));
  EXPECT_EQ(set.left_out, std::vector<std::string>{"qa3"});
  EXPECT_EQ(set.splits.test.size(), 2u);
  EXPECT_EQ(set.splits.validation.size(), 8u);
  EXPECT_EQ(set.splits.train.size(), 72u);
  EXPECT_EQ(read_story_set(base_.string(), {.tasks = {"qa10"}}).tasks.size(), 1u);
  EXPECT_EQ(read_story_set(base_.string(), {.split = {.all_test = true}}).splits.test.size(), 3u);
  EXPECT_THROW(read_story_set(base_.string(), {.tasks = {"qa7"}}), FileError);
  EXPECT_THROW(read_story_set(base_.string(), {.split = {.folds = 2}}), FileError);
  write("qa2_two_train.txt", many);
  EXPECT_THROW(read_story_set(base_.string(), {}), FileError) << "two training files of a task";
}

TEST_F(Stories, EqualStoriesStayOnOneSide) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "1 A b" + std::to_string(i % 20) + ".\n2 Who?\tx\t1\n";
  const StorySet set = read_story_set(write("one.txt", text), {});
  EXPECT_EQ(set.items.size(), 60u);
  std::map<std::string, Split> side;
  for (const FiledStory& one : set.stories) {
    const auto [place, fresh] = side.try_emplace(one.story.lines[0], one.split);
    EXPECT_EQ(place->second, one.split);
  }
}

TEST(GeneratedStories, AnswersFollowFromTheSupportingLinesAlone) {
  const StorySet set = generate_stories(400, 3);
  EXPECT_EQ(set.splits.train.size(), 400u);
  EXPECT_EQ(set.splits.validation.size(), 50u);
  EXPECT_EQ(set.splits.test.size(), 100u);
  const auto last_word = [](const std::string& line) { return story_words(line).back(); };
  for (const FiledStory& one : set.stories) {
    const StoryQuestion& question = one.story.questions.at(0);
    ASSERT_EQ(question.support.size(), one.task + 1);
    const std::string& move = one.story.lines[static_cast<size_t>(question.support.back())];
    EXPECT_EQ(last_word(move), question.answer);
    const std::string person = story_words(move)[0];
    if (one.task == 0) {
      EXPECT_EQ(person, last_word(question.text));
    } else {
      const std::string& taken = one.story.lines[static_cast<size_t>(question.support[0])];
      EXPECT_EQ(story_words(taken)[0], person);
      EXPECT_EQ(last_word(taken), last_word(question.text));
    }
    // Nobody moves after the line that says where they are.
    for (size_t line = static_cast<size_t>(question.support.back()) + 1;
         line < one.story.lines.size(); ++line)
      EXPECT_FALSE(story_words(one.story.lines[line])[0] == person &&
                   one.story.lines[line].find(" to the ") != std::string::npos);
  }
}

TEST(StoryCodec, AnswersAreWordsAndUnknownWordsAreNone) {
  StorySet set;
  set.tasks = {"a"};
  set.stories.push_back(
      {.story = {.lines = {"Mary slept."},
                 .questions = {{.seen = 1, .text = "Who?", .answer = "Mary,John"}}}});
  const StoryCodec codec(set);
  EXPECT_EQ(codec.answer_text(codec.answer("mary,john")), "mary,john");
  EXPECT_EQ(codec.answer("Bill"), -1);
  EXPECT_EQ(codec.ids("Mary ran")[1], 0);
  EXPECT_EQ(codec.unknown({.lines = {"Bill slept."}, .questions = {}},
                          {.seen = 1, .text = "Who ran?", .answer = ""}),
            (std::vector<std::string>{"bill", "ran"}));
}

}  // namespace
}  // namespace fovea::data
