#include "systems/story_task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/text.h"
#include "train/fields.h"

namespace fovea::systems {
namespace {

constexpr const char* kVocabularyFile = "vocabulary";

}  // namespace

std::vector<Option> story_options() {
  return {Option("stories", 4000, "number of generated training stories").between(16, 1000000),
          Option("tasks", "",
                 "tasks of a folder of stories, separated by commas: qa1,qa2; empty: all")};
}

void StoryTask::read(const Source& source) {
  const OptionValues& options = run_options_.options;
  set_ = source.path.empty() ? data::generate_stories(options.integer("stories"), source.seed)
                             : data::read_story_set(source.path, {.tasks = options.list("tasks"),
                                                                  .split = split_request(source)});
  if (has_codec_) encode();
}

std::string StoryTask::read_in_words() const {
  return fmt::format("{} questions to learn from; tasks: {}{}", set_.splits.train.size(),
                     fmt::join(set_.tasks, ", "),
                     set_.left_out.empty()
                         ? ""
                         : fmt::format("; left out, because there is no training file: {}",
                                       fmt::join(set_.left_out, ", ")));
}

void StoryTask::prepare() {
  codec_ = data::StoryCodec(set_);
  has_codec_ = true;
  encode();
}

Assets StoryTask::assets() const {
  return {.facts = Json::object(), .files = {{kVocabularyFile, codec_.text()}}};
}

void StoryTask::restore(const Assets& assets) {
  codec_ = data::StoryCodec(train::file_of(assets, kVocabularyFile), kVocabularyFile);
  has_codec_ = true;
}

std::vector<std::string> StoryTask::notes_on(const data::Story& story) const {
  const data::StoryQuestion& question = story.questions.back();
  const std::vector<std::string> unknown = codec_.unknown(story, question);
  std::vector<std::string> out;
  if (!unknown.empty()) out.push_back("never seen in training: " + data::listed(unknown));
  if (question.seen == 0) out.push_back("no story before the question");
  return out;
}

void StoryTask::predict(Input input, std::ostream& out) {
  std::vector<data::Story> stories;
  data::StoryReader reader(input.name, stories);
  answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
    if (!reader.add(number, line)) return {};
    stories.erase(stories.begin(), stories.end() - 1);
    if (input.noted)
      for (const std::string& note : notes_on(stories[0]))
        input.noted(fmt::format("{}:{}: {}", input.name, number, note));
    return answer(stories[0]);
  });
}

Written StoryTask::write() const {
  return {.files = data::story_files(set_),
          .truth = "the numbers at the end of each question: the lines it rests on"};
}

Evaluation StoryTask::figures(const train::TaskCounts& counts, double loss, double judged) {
  Evaluation out = counts.figures();
  if (judged > 0) out.metrics["loss"] = loss / judged;
  if (const double unseen = static_cast<double>(out.items) - judged; unseen > 0)
    out.notes.push_back(fmt::format(
        "{:.0f} questions have an answer never seen in training: they count as wrong", unseen));
  return out;
}

std::vector<data::Story> StoryTask::stories_in(Input& input) {
  std::vector<data::Story> out;
  data::StoryReader reader(input.name, out);
  data::each_line(input.stream, input.name,
                  [&](size_t number, std::string_view line) { reader.add(number, line); });
  std::erase_if(out, [](const data::Story& story) { return story.questions.empty(); });
  if (out.empty()) throw data::FileError(input.name, 0, "no question after a story in it");
  return out;
}

std::vector<data::Story> StoryTask::test_stories(size_t most, size_t of_a_task) const {
  std::vector<data::Story> out;
  std::map<size_t, size_t> taken;
  for (const data::FiledStory& one : set_.stories)
    if (one.split == Split::kTest && !one.story.questions.empty() && out.size() < most &&
        taken[one.task]++ < of_a_task)
      out.push_back(one.story);
  return out;
}

}  // namespace fovea::systems
