#include "systems/machines/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <tuple>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/formats/bags.h"
#include "systems/machines/copy_run.h"
#include "systems/machines/dataset.h"
#include "systems/machines/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"
#include "train/interrupt.h"

namespace fovea::systems::machines {
namespace {

using Sequences = std::vector<Sequence>;

// Wrong bits, counted over some sequences.
struct Count {
  double sequences = 0, bits = 0, exact = 0;
  void add(double wrong) {
    sequences += 1;
    bits += wrong;
    exact += wrong == 0;
  }
  double mean() const { return bits / sequences; }
};

class CopyTask : public GradientTask {
 public:
  CopyTask(const RunOptions& run_options, MakeMachine make)
      : run_options_(run_options),
        make_(std::move(make)),
        job_(run_options.options.text("task") == "copy" ? Job::kCopy : Job::kRepeatCopy) {}

  void read(const Source& source) override {
    const int64_t bits = machine_ ? bits_ : 0;  // a machine that is built accepts no other width
    dataset_ = source.path.empty() ? generated_dataset(source, run_options_.options, job_)
                                   : read_dataset(source, job_, bits);
    if (!machine_) bits_ = static_cast<int64_t>(dataset_.at(0).words.front().size());
  }
  std::string read_in_words() const override {
    return fmt::format("{} sequences of {} bits to learn from", items(Split::kTrain), bits_);
  }
  // The longest sequence in training, and the most repeats. Longer ones are counted separately.
  void prepare() override {
    for (const int64_t i : dataset_.splits.train) {
      longest_ = std::max(longest_, dataset_.at(i).length());
      repeats_ = std::max(repeats_, dataset_.at(i).repeats);
    }
  }
  Assets assets() const override {
    return {.facts = {{"bits", bits_}, {"longest", longest_}, {"repeats", repeats_}}, .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "config.json: facts.");
    origin_ = Origin::kSaved;
    bits_ = facts.integer("bits", 1, data::kMostFeatures);
    longest_ = facts.integer("longest", 1);
    if (assets.facts.contains("repeats")) repeats_ = facts.integer("repeats", 1);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return machine_ = make_(input_width(bits_, job_), output_width(bits_, job_), origin_);
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(dataset_.splits.of(split).size());
  }
  std::vector<int64_t> lengths() const override { return lengths_of(dataset_.splits.train); }
  std::vector<uint64_t> item_keys(Split split) const override {
    return dataset_.splits.keys_of(split);
  }

  Loss loss(const Batch& batch) override {
    Sequences sequences = dataset_.chosen(at_positions(dataset_.splits.train, batch.items));
    const auto most = static_cast<size_t>(
        words_learned(batch.epoch, run_options_.options.integer("curriculum"), longest_));
    for (Sequence& sequence : sequences)
      sequence.words.resize(std::min(sequence.words.size(), most));
    const Encoded e = on_device(sequences);
    const torch::Tensor sum = bit_losses(machine_->run(e.input), e).sum(), asked = e.asked.sum();
    return {sum / (asked * e.wanted.size(2)), asked.item<int64_t>()};
  }

  Evaluation evaluate(Split) override;
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override { return written(dataset_, job_); }

 private:
  std::vector<int64_t> lengths_of(const std::vector<int64_t>& items) const {
    std::vector<int64_t> out;
    for (const int64_t item : items) out.push_back(steps(dataset_.at(item), job_));
    return out;
  }
  Encoded on_device(const Sequences& sequences) const;
  CopyRun run(const Sequences& sequences) { return run_copy(*machine_, on_device(sequences)); }
  std::vector<explain::Explanation> shown(const Sequence& sequence);
  explain::Plot by_length();

  const RunOptions run_options_;
  const MakeMachine make_;
  const Job job_;
  Origin origin_ = Origin::kNew;
  Dataset dataset_;
  int64_t bits_ = 0, longest_ = 0;
  int64_t repeats_ = 0;  // 0: not known, of a run from before they were kept
  std::shared_ptr<Machine> machine_;
};

// ---- running ------------------------------------------------------------------------------------

Encoded CopyTask::on_device(const Sequences& sequences) const {
  const Encoded e = encoded(sequences, job_);
  const torch::Device device = run_options_.device;
  return {e.input.to(device), e.wanted.to(device), e.asked.to(device)};
}

Evaluation CopyTask::evaluate(Split split) {
  Evaluation out;
  const std::vector<int64_t>& all = dataset_.splits.of(split);
  Count trained, longest, longer;
  double loss = 0, asked = 0, found = 0, words = 0;
  for (const auto& positions :
       data::ordered_batches(items(split), lengths_of(all), {.items = 128})) {
    train::stop_if_interrupted("while judging");
    const Sequences sequences = dataset_.chosen(at_positions(all, positions));
    const CopyRun ran = run(sequences);
    const torch::Tensor losses = bit_losses(ran.logits, ran.encoded).mean(2).sum(0).cpu();
    for (size_t i = 0; i < sequences.size(); ++i) {
      const auto index = static_cast<int64_t>(i);
      const Sequence& sequence = sequences[i];
      const auto wrong = ran.wrong[index].item<double>();
      if (sequence.length() > longest_) {
        longer.add(wrong);
        continue;
      }
      trained.add(wrong);
      if (sequence.length() == longest_) longest.add(wrong);
      loss += losses[index].item<double>();
      asked += static_cast<double>(answer_steps(sequence, job_));
      found += hits(ran, index, sequence);
      words += static_cast<double>(sequence.length() * sequence.repeats);
    }
  }
  out.items = static_cast<int64_t>(trained.sequences + longer.sequences);
  out.put("loss", loss / asked);
  out.put("wrong_bits", trained.mean());
  out.put("exact", trained.exact / trained.sequences);
  if (longest.sequences > 0) out.metrics["wrong_bits_longest"] = longest.mean();
  if (longer.sequences > 0) {
    out.metrics["wrong_bits_longer"] = longer.mean();
    out.notes.push_back(fmt::format(
        "{:.0f} sequences are longer than the {} words of the longest in training: they count in "
        "wrong_bits_longer alone",
        longer.sequences, longest_));
  }
  if (words > 0) out.attention["hit_rate"] = found / words;
  return out;
}

// ---- answers ------------------------------------------------------------------------------------

void CopyTask::predict(Input input, std::ostream& out) {
  answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
    const Sequence sequence = parsed(line, job_, bits_, input.name, number);
    if (input.noted && sequence.length() > longest_)
      input.noted(fmt::format("{}:{}: {} words, the longest in training had {}", input.name, number,
                              sequence.length(), longest_));
    if (input.noted && repeats_ > 0 && sequence.repeats > repeats_)
      input.noted(fmt::format("{}:{}: {} repeats, the most in training were {}", input.name, number,
                              sequence.repeats, repeats_));
    const torch::Tensor logits = run({sequence}).logits.select(1, 0);
    return {
        answer(logits, sequence, job_, bits_) + "\n", [this, logits, sequence] {
          Json bits = Json::array();  // the probability that each is 1
          const torch::Tensor p = logits.sigmoid();
          for (int64_t t = 0; t < answer_steps(sequence, job_); ++t)
            bits.push_back(to_floats(p[sequence.length() + 1 + t].narrow(0, 0, bits_)));
          return Json{{"answer", answer(logits, sequence, job_, bits_)}, {"probabilities", bits}};
        }};
  });
}

std::vector<explain::Explanation> CopyTask::shown(const Sequence& sequence) {
  const torch::NoGradGuard no_grad;
  const CopyRun ran = run({sequence});
  Shown out{.title = text_of(sequence, job_),
            .outcome = answer(ran.logits.select(1, 0), sequence, job_, bits_),
            .taken_in = sequence.length() + 1};
  machine_->run(ran.encoded.input, [&](const Moment& moment) { out.moments.push_back(moment); });
  for (const std::string& word : sequence.words) out.steps.push_back(word);
  out.steps.push_back(job_ == Job::kCopy      ? "say it"
                      : sequence.repeats == 1 ? "say it once"
                                              : fmt::format("say it {} times", sequence.repeats));
  const int64_t words = sequence.length() * sequence.repeats;
  for (int64_t t = 0; t < words; ++t) {
    const int64_t word = t % sequence.length(), step = sequence.length() + 1 + t;
    out.steps.push_back("→ " + sequence.words[static_cast<size_t>(word)]);
    out.truth.push_back({static_cast<int32_t>(step),
                         static_cast<int32_t>(ran.row_written[word][0].item<int64_t>()), 1});
  }
  if (job_ == Job::kRepeatCopy) out.steps.push_back("→ done");
  const auto wrong = ran.wrong[0].item<int64_t>();
  out.outcome += wrong == 0   ? " (right)"
                 : wrong == 1 ? " (wrong: one bit)"
                              : fmt::format(" (wrong: {} bits)", wrong);
  return pictures(*machine_, out);
}

explain::Plot CopyTask::by_length() {
  explain::Plot plot{.title = "Wrong bits of a sequence, by its length",
                     .x_label = "words",
                     .y_label = "wrong bits"};
  std::map<int64_t, Count> counts;
  const std::vector<int64_t>& all = dataset_.splits.test;
  for (const auto& positions :
       data::ordered_batches(items(Split::kTest), lengths_of(all), {.items = 128})) {
    const Sequences sequences = dataset_.chosen(at_positions(all, positions));
    const torch::Tensor wrong = run(sequences).wrong;
    for (size_t i = 0; i < sequences.size(); ++i)
      counts[sequences[i].length()].add(wrong[static_cast<int64_t>(i)].item<double>());
  }
  explain::Curve curve{.kind = explain::Curve::Kind::kBars, .label = "mean of the test sequences"};
  for (const auto& [length, count] : counts) {
    curve.x.push_back(static_cast<double>(length));
    curve.y.push_back(count.mean());
  }
  plot.curves.push_back(std::move(curve));
  plot.markers.push_back(
      {.label = "longest in training", .x = static_cast<double>(longest_) + 0.5});
  return plot;
}

std::vector<explain::Explanation> CopyTask::explain(Input* input) {
  std::vector<explain::Explanation> out;
  const auto add_shown = [&](const Sequence& sequence) {
    for (explain::Explanation& picture : shown(sequence)) out.push_back(std::move(picture));
  };
  if (input) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      add_shown(parsed(line, job_, bits_, input->name, number));
    });
    return out;
  }
  // A sequence of the longest length in training, and a longer one: of those with the fewest
  // mistakes one whose words differ, each written to a row of its own and read there.
  const auto add_best = [&](const auto& wanted) {
    constexpr size_t kTried = 40;
    std::vector<Sequence> tried;
    for (const int64_t item : dataset_.splits.test) {
      if (tried.size() == kTried) break;
      if (wanted(dataset_.at(item).length())) tried.push_back(dataset_.at(item));
    }
    const torch::NoGradGuard no_grad;
    const Sequence* best = nullptr;
    std::tuple<int64_t, size_t, size_t, double> most;
    for (const Sequence& sequence : tried) {
      const CopyRun ran = run({sequence});
      std::set<int64_t> rows;
      for (int64_t t = 0; t < sequence.length(); ++t)
        rows.insert(ran.row_written[t][0].item<int64_t>());
      const std::set<std::string> words(sequence.words.begin(), sequence.words.end());
      const std::tuple shows{-ran.wrong[0].item<int64_t>(), words.size(), rows.size(),
                             hits(ran, 0, sequence)};
      if (best && shows <= most) continue;
      best = &sequence;
      most = shows;
    }
    if (best) add_shown(*best);
  };
  add_best([&](int64_t length) { return length == longest_; });
  add_best([&](int64_t length) { return length > longest_; });
  if (out.empty()) add_best([](int64_t) { return true; });
  if (!out.empty()) out.front().plots.push_back(by_length());
  return out;
}

}  // namespace

std::vector<Option> options_with(Option task, int64_t curriculum, std::vector<Option> machine) {
  std::vector<Option> out = {
      std::move(task),
      Option("bits", 6, "number of bits of a generated word").between(1, 64),
      Option("longest", 8,
             "largest number of words of a generated sequence; evaluated up to twice as many")
          .between(1, 1000),
      Option("repeats", 3, "largest number of repeats in a generated answer").between(1, 100),
      Option("curriculum", curriculum,
             "number of epochs in which training sequences are cut: to few words at first, then to "
             "more; 0: "
             "never cut")
          .between(0, 10000000),
      Option("sequences", 20000, "number of generated sequences, for training and for test")
          .between(16, 10000000)};
  out.insert(out.end(), std::make_move_iterator(machine.begin()),
             std::make_move_iterator(machine.end()));
  return out;
}

std::vector<std::string> formats() {
  return {"generated: sequences of 1 to longest= words of bits=",
          "a file, or a folder of train.txt, val.txt, test.txt: a sequence a line, words of bits: "
          "`010011 110000`; for repeat-copy with how often: `010011 110000 x3`"};
}

std::unique_ptr<Task> make_copy_task(const RunOptions& run_options, MakeMachine make) {
  return std::make_unique<CopyTask>(run_options, std::move(make));
}

}  // namespace fovea::systems::machines
