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
#include "data/story_codec.h"
#include "data/formats/text.h"
#include "systems/memory_network/model.h"
#include "systems/memory_network/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"
#include "train/descent/finite.h"
#include "train/interrupt.h"
#include "train/task_counts.h"

namespace fovea::systems::memory_network {
namespace {

using Ids = data::StoryCodec::Ids;
using Support = train::TaskCounts::Support;

constexpr const char* kVocabularyFile = "vocabulary";

class MemoryNetwork : public GradientTask {
 public:
  explicit MemoryNetwork(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    const OptionValues& options = run_options_.options;
    set_ = source.path.empty()
               ? data::generate_stories(options.integer("stories"), source.seed)
               : data::read_story_set(
                     source.path, {.tasks = options.list("tasks"), .split = split_request(source)});
    if (model_) encoded_ = codec_.encoded(set_);
  }
  std::string read_in_words() const override {
    return fmt::format("{} questions to learn from; tasks: {}{}", items(Split::kTrain),
                       fmt::join(set_.tasks, ", "),
                       set_.left_out.empty()
                           ? ""
                           : fmt::format("; left out, because there is no training file: {}",
                                         fmt::join(set_.left_out, ", ")));
  }
  void prepare() override {
    codec_ = data::StoryCodec(set_);
    encoded_ = codec_.encoded(set_);
  }
  Assets assets() const override {
    return {.facts = Json::object(), .files = {{kVocabularyFile, codec_.text()}}};
  }
  void restore(const Assets& assets) override {
    codec_ = data::StoryCodec(train::file_of(assets, kVocabularyFile), kVocabularyFile);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    static const std::map<std::string, nn::LineEncoding> encodings = {
        {"position", nn::LineEncoding::kPosition},
        {"centred", nn::LineEncoding::kCentred},
        {"bag", nn::LineEncoding::kBag}};
    const OptionValues& o = run_options_.options;
    const nn::MemoryOptions options{
        .words = codec_.words(),
        .width = o.integer("width"),
        .hops = o.integer("hops"),
        .slots = o.integer("slots"),
        .tying = o.text("tying") == "adjacent" ? nn::Tying::kAdjacent : nn::Tying::kLayerWise,
        .encoding = encodings.at(o.text("encoding"))};
    return model_ = std::make_shared<Model>(options, o.text("training") == "supervised"
                                                         ? Training::kSupervised
                                                         : Training::kEndToEnd);
  }
  std::vector<uint64_t> item_keys(Split split) const override { return set_.splits.keys_of(split); }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(set_.splits.of(split).size());
  }

  // Linear start: until validation gets no better, which no later epoch undoes.
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
    // The authors halve the rate while they read linearly; the loss is reported as it is.
    if (model_->reads_linearly()) mean = 0.5 * mean + 0.5 * mean.detach();
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
    Evaluation out = counts.figures();
    if (judged > 0) out.metrics["loss"] = loss / judged;
    const auto remark = [&](double count, const std::string& what) {
      if (count > 0) out.notes.push_back(fmt::format("{:.0f} questions {}", count, what));
    };
    remark(static_cast<double>(out.items) - judged,
           "have an answer never seen in training: they count as wrong");
    remark(forgotten, fmt::format("rest on a line older than the {} that the memory holds",
                                  run_options_.options.integer("slots")));
    return out;
  }

  // A statement is remembered. A question is answered: the answer, its probability, and the
  // heaviest line of each hop, counted from the story's first.
  void predict(Input input, std::ostream& out) override {
    std::vector<data::Story> stories;
    data::StoryReader reader(input.name, stories);
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      if (!reader.add(number, line)) return {};
      stories.erase(stories.begin(), stories.end() - 1);
      const data::StoryQuestion& question = stories[0].questions.back();
      if (input.noted)
        for (const std::string& note : notes_on(stories[0], question))
          input.noted(fmt::format("{}:{}: {}", input.name, number, note));
      const auto& [shown, recall] = tell(stories[0], question);
      Ids lines;
      for (const float at : to_floats(model_->heaviest(recall)))
        if (at >= 0) lines.push_back(shown.forgotten + static_cast<int64_t>(at) + 1);
      return {
          fmt::format("{}\t{:.4f}\t{}\n", shown.answer, shown.probability,
                      lines.empty() ? "no line" : fmt::format("lines {}", fmt::join(lines, " "))),
          [this, lines, p = model_->logits(recall).softmax(1)[0]] {
            Json fields = class_fields(codec_.answers(), to_floats(p));
            fields["story_lines"] = lines;
            return fields;
          }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    const auto add = [&](const data::Story& story, const data::StoryQuestion& question) {
      if (question.seen == 0) return;  // nothing to look at
      const auto [shown, recall] = tell(story, question);
      out.push_back(picture(shown, recall));
    };
    if (input) {
      std::vector<data::Story> stories;
      data::StoryReader reader(input->name, stories);
      data::each_line(input->stream, input->name,
                      [&](size_t number, std::string_view line) { reader.add(number, line); });
      for (const data::Story& story : stories)
        for (const data::StoryQuestion& question : story.questions) add(story, question);
      if (out.empty()) throw data::FileError(input->name, 0, "no question after a story in it");
      return out;
    }
    constexpr size_t kShown = 6;
    std::map<size_t, size_t> of_task;
    const size_t each = std::max<size_t>(1, kShown / set_.tasks.size());
    for (const data::FiledStory& one : set_.stories)
      if (one.split == Split::kTest && !one.story.questions.empty() && out.size() < kShown &&
          of_task[one.task]++ < each)
        add(one.story, one.story.questions.back());
    return out;
  }

  Written write() const override {
    return {.files = data::story_files(set_),
            .truth = "the numbers at the end of each question: the lines it rests on"};
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
        asked, {.slots = run_options_.options.integer("slots"), .noise = noise, .seed = seed});
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

  // What the model makes of one question, which may be anybody's.
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

  std::vector<std::string> notes_on(const data::Story& story,
                                    const data::StoryQuestion& question) const {
    std::vector<std::string> out;
    const std::vector<std::string> unknown = codec_.unknown(story, question);
    if (!unknown.empty()) out.push_back("never seen in training: " + data::listed(unknown));
    if (const int64_t slots = run_options_.options.integer("slots"); question.seen > slots)
      out.push_back(
          fmt::format("a story of {} lines: the memory holds the newest {}", question.seen, slots));
    if (question.seen == 0) out.push_back("no story before the question");
    return out;
  }

  const RunOptions run_options_;
  data::StorySet set_;
  data::StoryCodec codec_;
  data::EncodedStories encoded_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_memory_network(const RunOptions& run_options) {
  return std::make_unique<MemoryNetwork>(run_options);
}

}  // namespace fovea::systems::memory_network
