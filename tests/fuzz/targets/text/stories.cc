// Stories and questions: bAbI's lines, lines without numbers, JSON Lines.
#include "data/formats/stories.h"

#include "tests/fuzz/target.h"

namespace fovea::fuzz {
namespace {

// bAbI's form says by a question mark what JSON says by a field.
bool can_be_babi(const data::Story& story) {
  const auto one_line = [](const std::string& text) {
    return text.find('\r') == std::string::npos;
  };
  for (const std::string& line : story.lines)
    if (line.ends_with('?') || !one_line(line)) return false;
  for (const data::StoryQuestion& question : story.questions)
    if (!one_line(question.text) || !one_line(question.answer)) return false;
  return true;
}

void fuzz_stories(std::string_view bytes) {
  const std::string path = folder().write("a.txt", bytes);
  std::vector<data::Story> read;
  if (!reads(path, [&] { read = data::read_stories(path); })) return;
  std::vector<data::Story> kept;
  for (const data::Story& story : read) {
    int64_t before = 0;
    for (const data::StoryQuestion& question : story.questions) {
      require(question.seen >= before && question.seen <= static_cast<int64_t>(story.lines.size()),
              "questions stand among the lines, in order");
      require(!question.text.empty() && !question.answer.empty(), "it asks, and has an answer");
      for (const int64_t line : question.support)
        require(line >= 0 && line < question.seen, "an answer rests on lines before it");
      before = question.seen;
      data::story_words(question.text);
    }
    if (!story.questions.empty() && can_be_babi(story)) kept.push_back(story);
  }
  if (kept.empty()) return;
  folder().write("a.txt", data::babi_text(kept));
  const auto again = data::read_stories(path);
  require(again.size() == kept.size(), "stories survive being written");
  for (size_t i = 0; i < kept.size(); ++i) {
    require(again[i].lines == kept[i].lines, "lines survive being written");
    require(again[i].questions.size() == kept[i].questions.size(), "questions survive");
    for (size_t q = 0; q < kept[i].questions.size(); ++q)
      require(again[i].questions[q].answer == kept[i].questions[q].answer &&
                  again[i].questions[q].support == kept[i].questions[q].support,
              "an answer survives being written");
  }
}
const Registration stories{"stories", fuzz_stories};

}  // namespace
}  // namespace fovea::fuzz
