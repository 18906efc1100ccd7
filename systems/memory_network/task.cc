#include "systems/memory_network/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>
#include <map>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/packed.h"
#include "data/formats/text.h"
#include "systems/memory_network/model.h"
#include "systems/memory_network/view.h"
#include "systems/story_task.h"
#include "train/classification_task.h"
#include "train/descent/finite.h"
#include "train/interrupt.h"

namespace fovea::systems::memory_network {
namespace {

using Ids = data::StoryCodec::Ids;
using Support = train::TaskCounts::Support;

class MemoryNetwork : public StoryTask {
 public:
  using StoryTask::StoryTask;

  std::shared_ptr<torch::nn::Module> build() override {
    static const std::map<std::string, nn::LineEncoding> encodings = {
        {"position", nn::LineEncoding::kPosition},
        {"centred", nn::LineEncoding::kCentred},
        {"fixed", nn::LineEncoding::kFixed},
        {"bag", nn::LineEncoding::kBag}};
    const OptionValues& o = run_options_.options;
    const nn::MemoryOptions options{
        .words = codec_.words(),
        .width = o.integer("width"),
        .hops = o.integer("hops"),
        .slots = o.integer("slots"),
        .tying = o.text("tying") == "adjacent" ? nn::Tying::kAdjacent : nn::Tying::kLayerWise,
        .encoding = encodings.at(o.text("encoding")),
        .longest = o.integer("longest"),
        .empty_slots =
            o.text("empty_slots") == "masked" ? nn::EmptySlots::kMasked : nn::EmptySlots::kWeighed};
    return model_ = std::make_shared<Model>(options, o.text("training") == "supervised"
                                                         ? Training::kSupervised
                                                         : Training::kEndToEnd);
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(set_.splits.of(split).size());
  }

  // Linear start: until validation does not improve; later epochs do not return to it.
  void begin_epoch(int64_t, const std::vector<Metrics>& history) override {
    const bool linear_start = run_options_.options.flag("linear_start") && !model_->supervised();
    bool linear = linear_start && items(Split::kValidation) > 0;
    double best = std::numeric_limits<double>::infinity();
    for (const Metrics& epoch : history) {
      linear = linear && epoch.contains("loss") && epoch.at("loss") < best;
      if (linear) best = epoch.at("loss");
    }
    if (const int64_t epochs = run_options_.options.integer("linear_epochs"); epochs > 0)
      linear = linear_start && static_cast<int64_t>(history.size()) < epochs;
    model_->set_reading(linear ? Reading::kLinear : Reading::kNormalised);
  }

  Loss loss(const Batch& batch) override {
    const Ids which = at_positions(set_.splits.train, batch.items);
    const nn::Remembered memory = packed(which, run_options_.options.number("noise"), batch.seed);
    const nn::Recall recall = model_->recall(memory.stories);
    torch::Tensor mean = torch::nn::functional::cross_entropy(
        model_->logits(recall), data::gather(encoded_.answers, which).to(run_options_.device));
    // Another rate during the linear start; the loss is reported unchanged.
    if (model_->reads_linearly()) {
      const double factor = run_options_.options.number("linear_rate");
      mean = factor * mean + (1 - factor) * mean.detach();
    }
    if (model_->supervised()) mean = mean + model_->support_loss(recall, memory);
    return {mean, static_cast<int64_t>(which.size())};
  }

  Evaluation evaluate(Split split) override {
    const Ids& all = set_.splits.of(split);
    train::TaskCounts counts(set_.tasks);
    double loss = 0, judged = 0, forgotten = 0;
    for (const auto& positions : data::ordered_batches(items(split), {}, {.items = 256})) {
      train::stop_if_interrupted("while judging");
      const Ids which = at_positions(all, positions);
      const nn::Remembered memory = packed(which, 0, 0);
      const nn::Recall recall = model_->recall(memory.stories);
      const torch::Tensor scores =
          train::finite(model_->logits(recall), "logits").to(torch::kFloat64).log_softmax(1).cpu();
      const torch::Tensor best = scores.argmax(1), heaviest = model_->heaviest(recall);
      for (size_t i = 0; i < which.size(); ++i) {
        const auto row = static_cast<int64_t>(i);
        const int64_t answer = encoded_.answers[static_cast<size_t>(which[i])];
        if (answer >= 0) loss -= scores[row][answer].item<double>();
        judged += answer >= 0;
        forgotten += memory.forgotten[i] > 0;
        counts.add(set_.stories[item(which[i]).story].task, best[row].item<int64_t>() == answer,
                   support_of(memory, i, heaviest.select(1, row)));
      }
    }
    Evaluation out = figures(counts, loss, judged);
    if (forgotten > 0)
      out.notes.push_back(
          fmt::format("{:.0f} questions rest on a line older than the {} that the memory holds",
                      forgotten, run_options_.options.integer("slots")));
    return out;
  }

  // Each question of the user's stories; for test stories the last one.
  std::vector<explain::Explanation> explain(Input* input) override {
    constexpr size_t kShown = 6;
    const std::vector<data::Story> stories =
        input ? stories_in(*input)
              : test_stories(kShown, std::max<size_t>(1, kShown / set_.tasks.size()));
    std::vector<explain::Explanation> out;
    for (const data::Story& story : stories)
      for (const data::StoryQuestion& question : story.questions) {
        const bool wanted = input || &question == &story.questions.back();
        if (!wanted || question.seen == 0) continue;  // no line before it, so nothing to read
        const auto [shown, recall] = tell(story, question);
        out.push_back(picture(shown, recall));
      }
    if (input && out.empty())
      throw data::FileError(input->name, 0, "no question after a story in it");
    if (!input)
      std::stable_sort(out.begin(), out.end(),
                       [](const auto& a, const auto& b) { return facts_read(a) > facts_read(b); });
    return out;
  }

 protected:
  void encode() override { encoded_ = codec_.encoded(set_); }

  // The answer, its probability, and the heaviest line of each hop, counted from the story's first.
  Answered answer(const data::Story& story) override {
    const auto [shown, recall] = tell(story, story.questions.back());
    Ids lines;
    for (const float at : to_floats(model_->heaviest(recall)))
      if (at >= 0) lines.push_back(shown.forgotten + static_cast<int64_t>(at) + 1);
    return {fmt::format("{}\t{:.4f}\t{}\n", shown.answer, shown.probability,
                        lines.empty() ? "no line" : fmt::format("lines {}", fmt::join(lines, " "))),
            [this, lines, p = model_->logits(recall).softmax(1)[0]] {
              Json fields = class_fields(codec_.answers(), to_floats(p));
              fields["story_lines"] = lines;
              return fields;
            }};
  }

  std::vector<std::string> notes_on(const data::Story& story) const override {
    std::vector<std::string> out = StoryTask::notes_on(story);
    const int64_t slots = run_options_.options.integer("slots"), seen = story.questions.back().seen;
    if (seen > slots)
      out.push_back(
          fmt::format("a story of {} lines: the memory holds the newest {}", seen, slots));
    return out;
  }

 private:
  const data::StoryItem& item(int64_t which) const {
    return set_.items[static_cast<size_t>(which)];
  }

  // Every supporting line is the heaviest of some hop.
  static Support support_of(const nn::Remembered& memory, size_t question,
                            const torch::Tensor& heaviest) {
    const Ids& support = memory.support[question];
    if (memory.forgotten[question] > 0) return Support::kMissed;
    if (support.empty()) return Support::kUnknown;
    return std::all_of(support.begin(), support.end(),
                       [&](int64_t line) { return heaviest.eq(line).any().item<bool>(); })
               ? Support::kFound
               : Support::kMissed;
  }

  nn::Remembered packed(std::span<const nn::Asked> asked, double noise, uint64_t seed) const {
    nn::Remembered out = nn::pack_stories(
        asked, {.slots = run_options_.options.integer("slots"),
                .noise = noise,
                .kind = run_options_.options.text("noise_kind") == "gaps" ? nn::Noise::kGaps
                                                                          : nn::Noise::kEmptyLines,
                .seed = seed});
    out.stories = out.stories.to(run_options_.device);
    return out;
  }
  nn::Remembered packed(const Ids& which, double noise, uint64_t seed) const {
    std::vector<nn::Asked> asked;
    for (const int64_t one : which) {
      const data::StoryItem& place = item(one);
      const data::StoryQuestion& question =
          set_.stories[place.story].story.questions[place.question];
      asked.push_back(
          {std::span(encoded_.lines[place.story]).first(static_cast<size_t>(question.seen)),
           encoded_.questions[static_cast<size_t>(one)], question.support});
    }
    return packed(asked, noise, seed);
  }

  // The model's result for one question, which may come from a user.
  std::pair<Shown, nn::Recall> tell(const data::Story& story, const data::StoryQuestion& question) {
    const std::vector<Ids> lines = codec_.ids(story.lines);
    const std::vector<nn::Asked> asked{{std::span(lines).first(static_cast<size_t>(question.seen)),
                                        codec_.ids(question.text), question.support}};
    const nn::Remembered memory = packed(asked, 0, 0);
    nn::Recall recall = model_->recall(memory.stories);
    const torch::Tensor p = model_->logits(recall).softmax(1)[0];
    Shown shown{
        .question = question.text,
        .answer = codec_.answer_text(p.argmax().item<int64_t>()),
        .expected = data::lower_ascii(question.answer),
        .probability = p.max().item<double>(),
        .forgotten = std::max<int64_t>(0, question.seen - run_options_.options.integer("slots")),
        .support = memory.support[0]};
    shown.lines.assign(story.lines.begin() + shown.forgotten, story.lines.begin() + question.seen);
    return {std::move(shown), std::move(recall)};
  }

  data::EncodedStories encoded_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_memory_network(const RunOptions& run_options) {
  return std::make_unique<MemoryNetwork>(run_options);
}

}  // namespace fovea::systems::memory_network
