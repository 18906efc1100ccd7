// A task on questions about stories: reading and splitting them, the vocabulary, answers to questions
// that a user asks. A system adds its model, its loss and its view.
#pragma once

#include <string>
#include <vector>

#include "data/story_codec.h"
#include "data/story_set.h"
#include "train/answers.h"
#include "train/task.h"
#include "train/task_counts.h"

namespace fovea::systems {

// The options that every such system has.
std::vector<Option> story_options();

class StoryTask : public GradientTask {
 public:
  explicit StoryTask(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source&) override;
  std::string read_in_words() const override;
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  // A run must not be evaluated on a question that it was trained on.
  std::vector<uint64_t> item_keys(Split split) const override { return set_.splits.keys_of(split); }
  // A line is a statement, which is stored, or a question, which is answered.
  void predict(Input, std::ostream&) override;
  Written write() const override;

 protected:
  // The stories of set_ as numbers, by codec_. Called when both are known.
  virtual void encode() = 0;
  // The answer to a story's last question.
  virtual Answered answer(const data::Story&) = 0;
  // What the user should know about a story's last question.
  virtual std::vector<std::string> notes_on(const data::Story&) const;

  // The counts, the mean loss of those that were `judged`, and how many were not because their
  // answer is unknown.
  static Evaluation figures(const train::TaskCounts& counts, double loss, double judged);

  // The stories of a file that have questions; FileError if none has.
  static std::vector<data::Story> stories_in(Input& input);
  // Test stories with questions: `most` in all, `of_a_task` of each task.
  std::vector<data::Story> test_stories(size_t most, size_t of_a_task) const;

  const RunOptions run_options_;
  data::StorySet set_;
  data::StoryCodec codec_;

 private:
  bool has_codec_ = false;
};

}  // namespace fovea::systems
