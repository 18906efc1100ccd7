#include "systems/dnc/stories.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>

#include "data/batches.h"
#include "data/formats/text.h"
#include "systems/dnc/model.h"
#include "systems/machines/view.h"
#include "systems/story_task.h"
#include "train/classification_task.h"
#include "train/descent/finite.h"
#include "train/interrupt.h"

namespace fovea::systems::dnc {
namespace {

using Ids = std::vector<int64_t>;
using Support = train::TaskCounts::Support;

// The scale of the first weights of keys, gates and written rows. With libtorch's own scale a row
// is so small beside the vector of a line that the controller learns to answer without the memory,
// and never begins to use it.
constexpr double kInterfaceGain = 4;

// Lines as vectors: Σ_j l_j ⊙ A x_j, with the position weights of Sukhbaatar et al. 2015, l_cj = (1
// - j/J) - (c/d)(1 - 2j/J). The order matters: who fears whom?
class StoryModel : public torch::nn::Module {
 public:
  StoryModel(int64_t words, nn::DncOptions options) {
    embedding_ = register_module(
        "embedding",
        torch::nn::Embedding(torch::nn::EmbeddingOptions(words, options.input).padding_idx(0)));
    machine = register_module("machine", std::make_shared<Model>(options));
    const torch::NoGradGuard no_grad;
    machine->named_parameters()["cell.interface.weight"].mul_(kInterfaceGain);
  }
  // words int64 [steps, B, most words], 0 where there is none or it is unknown, and how many each line
  // has, [steps, B, 1] -> [steps, B, width]
  torch::Tensor lines(const torch::Tensor& words, const torch::Tensor& counts) {
    const torch::Tensor vectors = embedding_(words);
    const int64_t width = vectors.size(3);
    const torch::Tensor place = torch::arange(1, words.size(2) + 1, vectors.options()) / counts,
                        number = torch::arange(1, width + 1, vectors.options()) / width;
    const torch::Tensor j = place.unsqueeze(3);
    return (vectors * ((1 - j) - number * (1 - 2 * j))).sum(2);
  }

  std::shared_ptr<Model> machine;

 private:
  torch::nn::Embedding embedding_{nullptr};
};

// A story as input of the machine.
struct Script {
  struct Asked {
    int64_t step, until;      // of the question, and of its answer
    int64_t answer;           // -1: not in the training, or unknown
    std::vector<int64_t> on;  // steps of its supporting lines
  };
  std::vector<Ids> steps;          // words; empty while the machine computes
  std::vector<std::string> names;  // of the steps
  std::vector<Asked> asked;
};

class StoriesTask : public StoryTask {
 public:
  StoriesTask(const RunOptions& run_options, const nn::DncOptions& options)
      : StoryTask(run_options), options_(options) {}

  void read(const Source& source) override {
    StoryTask::read(source);
    for (auto& [split, stories] : stories_) stories.clear();
    for (size_t i = 0; i < set_.stories.size(); ++i)
      if (!set_.stories[i].story.questions.empty())
        stories_[set_.stories[i].split].push_back(static_cast<int64_t>(i));
  }
  std::shared_ptr<torch::nn::Module> build() override {
    nn::DncOptions options = options_;
    options.input = run_options_.options.integer("line_width");
    options.output = codec_.words() - data::StoryCodec::kFirstAnswer;
    return model_ = std::make_shared<StoryModel>(codec_.words(), options);
  }
  // A training item is a story with all its questions.
  int64_t items(Split split) const override {
    return static_cast<int64_t>(stories_.at(split).size());
  }
  std::vector<int64_t> lengths() const override { return lengths_of(Split::kTrain); }

  Loss loss(const Batch& batch) override {
    const Read read = read_scripts(chosen(Split::kTrain, batch.items));
    return {torch::nn::functional::cross_entropy(
                answers(read), read.answers,
                torch::nn::functional::CrossEntropyFuncOptions().ignore_index(-1)),
            read.answers.size(0)};
  }

  Evaluation evaluate(Split split) override;
  std::vector<explain::Explanation> explain(Input*) override;

 protected:
  void encode() override;
  Answered answer(const data::Story& story) override;
  std::vector<std::string> notes_on(const data::Story& story) const override {
    std::vector<std::string> out = StoryTask::notes_on(story);
    const int64_t lines = story.questions.back().seen;
    if (lines > options_.rows)
      out.push_back(fmt::format("a story of {} lines: the memory has {} row{}", lines,
                                options_.rows, options_.rows == 1 ? "" : "s"));
    return out;
  }

 private:
  struct Read {
    torch::Tensor words;    // [steps, B, most words]
    torch::Tensor counts;   // [steps, B, 1]: how many, at least 1
    torch::Tensor places;   // [questions]: step * B + story, where each is answered
    torch::Tensor answers;  // [questions]
  };
  using Scripts = std::vector<const Script*>;

  Script script_of(const data::Story& story) const;
  Scripts chosen(Split split, std::span<const int64_t> positions) const;
  std::vector<int64_t> lengths_of(Split split) const;
  Read read_scripts(const Scripts& scripts) const;
  torch::Tensor answers(const Read& read, const machines::Watch& watch = {});
  std::vector<explain::Explanation> shown(const data::Story& story);

  const nn::DncOptions options_;
  std::vector<Script> scripts_;  // of each story of the set
  std::map<Split, std::vector<int64_t>> stories_ = {
      {Split::kTrain, {}}, {Split::kValidation, {}}, {Split::kTest, {}}};
  std::shared_ptr<StoryModel> model_;
};

// ---- steps --------------------------------------------------------------------------------------

Script StoriesTask::script_of(const data::Story& story) const {
  Script out;
  std::vector<int64_t> step_of;
  const auto add = [&](Ids words, const std::string& name) {
    out.steps.push_back(std::move(words));
    out.names.push_back(name);
    return static_cast<int64_t>(out.steps.size()) - 1;
  };
  for (const data::StoryQuestion& question : story.questions) {
    while (static_cast<int64_t>(step_of.size()) < question.seen) {
      const std::string& line = story.lines[step_of.size()];
      step_of.push_back(add(codec_.ids(line), line));
    }
    Script::Asked asked{.step = add(codec_.ids(question.text), question.text),
                        .answer = codec_.answer(question.answer)};
    asked.until = asked.step;
    for (int64_t i = 0; i < run_options_.options.integer("think"); ++i) asked.until = add({}, "…");
    for (const int64_t line : question.support)
      asked.on.push_back(step_of[static_cast<size_t>(line)]);
    out.asked.push_back(std::move(asked));
  }
  return out;
}

void StoriesTask::encode() {
  scripts_.clear();
  for (const data::FiledStory& one : set_.stories) scripts_.push_back(script_of(one.story));
}

StoriesTask::Scripts StoriesTask::chosen(Split split, std::span<const int64_t> positions) const {
  Scripts out;
  for (const int64_t story : at_positions(stories_.at(split), positions))
    out.push_back(&scripts_[static_cast<size_t>(story)]);
  return out;
}

std::vector<int64_t> StoriesTask::lengths_of(Split split) const {
  std::vector<int64_t> out;
  for (const int64_t story : stories_.at(split))
    out.push_back(static_cast<int64_t>(scripts_[static_cast<size_t>(story)].steps.size()));
  return out;
}

StoriesTask::Read StoriesTask::read_scripts(const Scripts& scripts) const {
  const auto count = static_cast<int64_t>(scripts.size());
  size_t steps = 1, words = 1;
  for (const Script* script : scripts) {
    steps = std::max(steps, script->steps.size());
    for (const Ids& line : script->steps) words = std::max(words, line.size());
  }
  torch::Tensor out = torch::zeros(
      {static_cast<int64_t>(steps), count, static_cast<int64_t>(words)}, torch::kInt64);
  torch::Tensor counts = torch::ones({static_cast<int64_t>(steps), count, 1});
  Ids places, answers;
  for (int64_t b = 0; b < count; ++b) {
    const Script& script = *scripts[static_cast<size_t>(b)];
    for (size_t t = 0; t < script.steps.size(); ++t) {
      const Ids& line = script.steps[t];
      const int64_t at = static_cast<int64_t>(t) * count + b;
      std::copy(line.begin(), line.end(),
                out.data_ptr<int64_t>() + at * static_cast<int64_t>(words));
      counts.data_ptr<float>()[at] = static_cast<float>(std::max<size_t>(1, line.size()));
    }
    for (const Script::Asked& asked : script.asked) {
      places.push_back(asked.until * count + b);
      answers.push_back(asked.answer);
    }
  }
  const torch::Device device = run_options_.device;
  return {out.to(device), counts.to(device), torch::tensor(places, torch::kInt64).to(device),
          torch::tensor(answers, torch::kInt64).to(device)};
}

torch::Tensor StoriesTask::answers(const Read& read, const machines::Watch& watch) {
  return model_->machine->run(model_->lines(read.words, read.counts), watch)
      .flatten(0, 1)
      .index_select(0, read.places);
}

// ---- answers ------------------------------------------------------------------------------------

Evaluation StoriesTask::evaluate(Split split) {
  const torch::NoGradGuard no_grad;
  train::TaskCounts counts(set_.tasks);
  double loss = 0, judged = 0;
  for (const auto& positions :
       data::ordered_batches(items(split), lengths_of(split), {.items = 128})) {
    train::stop_if_interrupted("while judging");
    const Scripts scripts = chosen(split, positions);
    const std::vector<int64_t> which = at_positions(stories_.at(split), positions);
    std::vector<torch::Tensor> written, looked;
    const Read read = read_scripts(scripts);
    const torch::Tensor scores =
        train::finite(answers(read,
                              [&](const machines::Moment& moment) {
                                written.push_back(moment.write.argmax(2).squeeze(1).cpu());
                                looked.push_back(moment.read.argmax(2).cpu());
                              }),
                      "logits")
            .to(torch::kFloat64)
            .log_softmax(1)
            .cpu();
    const torch::Tensor best = scores.argmax(1), row_written = torch::stack(written),
                        row_read = torch::stack(looked);
    int64_t question = 0;
    for (size_t b = 0; b < scripts.size(); ++b)
      for (const Script::Asked& asked : scripts[b]->asked) {
        const auto story = static_cast<int64_t>(b);
        if (asked.answer >= 0) loss -= scores[question][asked.answer].item<double>();
        judged += asked.answer >= 0;
        // Every supporting line's row is the heaviest of some head, from the question to its answer.
        const torch::Tensor rows =
            row_read.narrow(0, asked.step, asked.until - asked.step + 1).select(1, story);
        const bool all = std::all_of(asked.on.begin(), asked.on.end(), [&](int64_t step) {
          return rows.eq(row_written[step][story]).any().item<bool>();
        });
        counts.add(set_.stories[static_cast<size_t>(which[b])].task,
                   best[question].item<int64_t>() == asked.answer,
                   asked.on.empty() ? Support::kUnknown
                   : all            ? Support::kFound
                                    : Support::kMissed);
        ++question;
      }
  }
  return figures(counts, loss, judged);
}

// The answer and its probability.
Answered StoriesTask::answer(const data::Story& story) {
  const torch::NoGradGuard no_grad;
  const Script script = script_of(story);
  const torch::Tensor p = answers(read_scripts({&script}))[-1].softmax(0);
  return {fmt::format("{}\t{:.4f}\n", codec_.answer_text(p.argmax().item<int64_t>()),
                      p.max().item<double>()),
          [this, p] { return class_fields(codec_.answers(), to_floats(p)); }};
}

std::vector<explain::Explanation> StoriesTask::shown(const data::Story& story) {
  const torch::NoGradGuard no_grad;
  const Script script = script_of(story);
  machines::Shown out{.title = story.questions.back().text, .steps = script.names};
  const torch::Tensor scores =
      answers(read_scripts({&script}),
              [&](const machines::Moment& moment) { out.moments.push_back(moment); });
  const auto row_written = [&](int64_t step) {
    return static_cast<int32_t>(
        out.moments[static_cast<size_t>(step)].write[0][0].argmax().item<int64_t>());
  };
  std::vector<std::string> said;
  for (size_t i = 0; i < script.asked.size(); ++i) {
    const Script::Asked& asked = script.asked[i];
    said.push_back(codec_.answer_text(scores[static_cast<int64_t>(i)].argmax().item<int64_t>()));
    const std::string wanted = data::lower_ascii(story.questions[i].answer);
    if (!wanted.empty() && wanted != said.back())
      said.back() += fmt::format(" (right: {})", wanted);
    for (const int64_t line : asked.on)
      for (int64_t step = asked.step; step <= asked.until; ++step)
        out.truth.push_back({static_cast<int32_t>(step), row_written(line), 1});
  }
  out.taken_in = static_cast<int64_t>(script.steps.size());
  out.outcome = fmt::format("{}", fmt::join(said, ", "));
  return machines::pictures(*model_->machine, out);
}

std::vector<explain::Explanation> StoriesTask::explain(Input* input) {
  constexpr size_t kShown = 4;
  std::vector<explain::Explanation> out;
  for (const data::Story& story : input ? stories_in(*input) : test_stories(kShown, 1))
    for (explain::Explanation& picture : shown(story)) out.push_back(std::move(picture));
  return out;
}

}  // namespace

std::unique_ptr<Task> make_stories_task(const RunOptions& run_options,
                                        const nn::DncOptions& options) {
  return std::make_unique<StoriesTask>(run_options, options);
}

}  // namespace fovea::systems::dnc
