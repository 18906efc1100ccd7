#include "systems/multi_head/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <istream>
#include <ostream>
#include <utility>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/random.h"
#include "systems/multi_head/model.h"
#include "systems/multi_head/sentences.h"
#include "systems/multi_head/view.h"
#include "train/answers.h"
#include "train/descent/finite.h"

namespace fovea::systems::multi_head {
namespace {

class MultiHeadTask : public GradientTask {
 public:
  explicit MultiHeadTask(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    for (Part* part : {&train_, &validation_, &test_}) part->clear();
    if (!source.path.empty()) {
      if (!source.all_test) {
        read_sentences(source.path + "/train.txt", train_);
        read_sentences(source.path + "/val.txt", validation_);
      }
      read_sentences(source.path + "/test.txt", test_);
      return;
    }
    data::Random random(data::mix(source.seed, 26));
    for (const auto& [part, count] : {std::pair{&train_, data::kGenerated.train},
                                      {&validation_, data::kGenerated.validation},
                                      {&test_, data::kGenerated.test}})
      for (int64_t i = 0; i < count; ++i) part->push_back(draw(random));
  }
  std::string read_in_words() const override {
    return fmt::format("{} sentences to learn from, {} to choose by, {} to judge", train_.size(),
                       validation_.size(), test_.size());
  }
  Written write() const override {
    Written out{.truth = "truth.jsonl, where the three answers stand"};
    for (const auto& [name, part] :
         {std::pair("train", &train_), std::pair("val", &validation_), std::pair("test", &test_)}) {
      for (size_t i = 0; i < part->size(); ++i) {
        const Sentence& sentence = (*part)[i];
        out.files[std::string(name) + ".txt"] +=
            fmt::format("{}\n", fmt::join(sentence.words, " "));
        out.files["truth.jsonl"] += Json{{"split", name},
                                         {"line", i + 1},
                                         {"who", sentence.places[0]},
                                         {"did_what", sentence.places[1]},
                                         {"to_whom", sentence.places[2]}}
                                        .dump() +
                                    "\n";
      }
    }
    return out;
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(run_options_.options.integer("width"),
                                            run_options_.options.integer("heads"),
                                            run_options_.options.text("mix"));
  }
  int64_t items(Split split) const override { return static_cast<int64_t>(part(split).size()); }
  std::vector<uint64_t> item_keys(Split split) const override {
    std::vector<uint64_t> keys;
    for (const Sentence& sentence : part(split))
      keys.push_back(data::item_key(fmt::format("{}", fmt::join(sentence.words, " "))));
    return keys;
  }

  Loss loss(const Batch& batch) override {
    const Read read = read_items(train_, batch.items);
    return {
        torch::nn::functional::cross_entropy(answers(read).flatten(0, 1), read.answers.flatten()),
        static_cast<int64_t>(batch.items.size())};
  }
  Evaluation evaluate(Split) override;
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;

 private:
  using Part = std::vector<Sentence>;
  struct Read {
    torch::Tensor words;    // [B, S, width]
    torch::Tensor lengths;  // int32 [B], on the host
    torch::Tensor answers;  // [B, 3]
  };
  const Part& part(Split split) const {
    return split == Split::kTrain ? train_ : split == Split::kValidation ? validation_ : test_;
  }
  Read read_items(const Part&, std::span<const int64_t> items);
  torch::Tensor answers(const Read&);  // [B, 3, classes]
  torch::Tensor looks(const Read&);    // [B, heads, S]
  std::array<int64_t, 3> heads_of_slots(const Part&);
  void keep_telling(Part&, const std::array<int64_t, 3>& heads);

  static constexpr size_t kCompared = 30, kShownSentences = 3;

  const RunOptions run_options_;
  Part train_, validation_, test_;
  std::shared_ptr<Model> model_;
};

MultiHeadTask::Read MultiHeadTask::read_items(const Part& from, std::span<const int64_t> items) {
  size_t longest = 1;
  for (const int64_t i : items)
    longest = std::max(longest, from[static_cast<size_t>(i)].words.size());
  const auto rows = static_cast<int64_t>(items.size()), width = static_cast<int64_t>(longest);
  torch::Tensor stems = torch::zeros({rows, width}, torch::kLong),
                suffixes = torch::zeros({rows, width}, torch::kLong);
  torch::Tensor answers = torch::zeros({rows, 3}, torch::kLong),
                lengths = torch::zeros({rows}, torch::kInt);
  for (int64_t b = 0; b < rows; ++b) {
    const Sentence& s = from[static_cast<size_t>(items[static_cast<size_t>(b)])];
    std::copy(s.stems.begin(), s.stems.end(), stems.data_ptr<int64_t>() + b * width);
    std::copy(s.suffixes.begin(), s.suffixes.end(), suffixes.data_ptr<int64_t>() + b * width);
    std::copy(s.answers.begin(), s.answers.end(), answers.data_ptr<int64_t>() + b * 3);
    lengths.data_ptr<int32_t>()[b] = static_cast<int32_t>(s.words.size());
  }
  return {model_->stem(stems.to(run_options_.device)) +
              model_->suffix(suffixes.to(run_options_.device)),
          lengths, answers.to(run_options_.device)};
}

torch::Tensor MultiHeadTask::answers(const Read& read) {
  return model_->out(model_->read(read.words, read.lengths)).view({-1, 3, kClasses});
}

torch::Tensor MultiHeadTask::looks(const Read& read) {
  return model_->looks(read.words, read.lengths);
}

std::vector<int64_t> everything(size_t count) {
  std::vector<int64_t> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = static_cast<int64_t>(i);
  return all;
}

// Nothing tells which head answers what. Each question gets the head that looks at its word most
// often; no head gets two questions if there are enough heads.
// Those first in which most heads point at the word that answers their question.
void MultiHeadTask::keep_telling(Part& p, const std::array<int64_t, 3>& heads) {
  if (p.empty()) return;
  const torch::Tensor best = looks(read_items(p, everything(p.size()))).argmax(-1);  // [B, heads]
  std::vector<std::pair<int, size_t>> order;  // misses, place
  for (size_t i = 0; i < p.size(); ++i) {
    int misses = 0;
    for (size_t s = 0; s < 3; ++s)
      misses += best[static_cast<int64_t>(i)][heads[s]].item<int64_t>() != p[i].places[s];
    order.emplace_back(misses, i);
  }
  std::sort(order.begin(), order.end());
  Part kept;
  for (size_t i = 0; i < std::min(kShownSentences, order.size()); ++i)
    kept.push_back(p[order[i].second]);
  p = std::move(kept);
}

std::array<int64_t, 3> MultiHeadTask::heads_of_slots(const Part& p) {
  const torch::Tensor best = looks(read_items(p, everything(p.size()))).argmax(-1);  // [B, heads]
  const int64_t heads = best.size(1);
  std::array<std::vector<int64_t>, 3> hits;
  for (size_t s = 0; s < 3; ++s) {
    hits[s].assign(static_cast<size_t>(heads), 0);
    for (size_t i = 0; i < p.size(); ++i)
      for (int64_t h = 0; h < heads; ++h)
        hits[s][static_cast<size_t>(h)] +=
            best[static_cast<int64_t>(i)][h].item<int64_t>() == p[i].places[s];
  }
  std::array<int64_t, 3> chosen = {0, 0, 0};
  int64_t most = -1;
  for (int64_t a = 0; a < heads; ++a)
    for (int64_t b = 0; b < heads; ++b)
      for (int64_t c = 0; c < heads; ++c) {
        if (heads >= 3 && (a == b || b == c || a == c)) continue;
        const int64_t sum = hits[0][static_cast<size_t>(a)] + hits[1][static_cast<size_t>(b)] +
                            hits[2][static_cast<size_t>(c)];
        if (sum > most) most = sum, chosen = {a, b, c};
      }
  return chosen;
}

Evaluation MultiHeadTask::evaluate(Split split) {
  const Part& p = part(split);
  const torch::NoGradGuard no_grad;
  const Read read = read_items(p, everything(p.size()));
  const torch::Tensor scores = train::finite(answers(read), "logits"),
                      right = scores.argmax(-1).eq(read.answers);
  Evaluation out;
  out.items = static_cast<int64_t>(p.size());
  out.metrics = {
      {"loss", torch::nn::functional::cross_entropy(scores.flatten(0, 1), read.answers.flatten())
                   .item<double>()},
      {"accuracy", right.to(torch::kDouble).mean().item<double>()},
      {"exact", right.all(1).to(torch::kDouble).mean().item<double>()}};
  const std::array<int64_t, 3> heads = heads_of_slots(p);
  const torch::Tensor best = looks(read).argmax(-1);
  double hits = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t s = 0; s < 3; ++s)
      hits += best[static_cast<int64_t>(i)][heads[s]].item<int64_t>() == p[i].places[s];
  out.attention = {{"hit_rate", hits / static_cast<double>(3 * p.size())}};
  return out;
}

std::string said(const torch::Tensor& scores) {
  const torch::Tensor best = scores.argmax(-1).cpu();
  return kNouns[static_cast<size_t>(best[0].item<int64_t>())] + " " +
         kVerbs[static_cast<size_t>(best[1].item<int64_t>())] + " " +
         kNouns[static_cast<size_t>(best[2].item<int64_t>())];
}

// One of the three words, with the probability of each it could have been.
Json part_of_the_answer(const torch::Tensor& scores, const std::vector<std::string>& words) {
  const auto count = static_cast<int64_t>(words.size());
  return class_fields(words, to_floats(scores.narrow(0, 0, count).softmax(0)));
}

// A line is a sentence; the answer is who did what to whom, in that order.
void MultiHeadTask::predict(Input input, std::ostream& out) {
  answer_lines(input, out, [&](size_t, std::string_view line) -> Answered {
    const std::vector<std::string> words = data::words(line);
    if (words.empty()) return {"\n", [] { return Json{{"answer", nullptr}}; }};
    const Part one = {sentence_of(words)};
    const torch::Tensor scores = answers(read_items(one, everything(1)))[0];
    return {said(scores) + "\n", [scores] {
              return Json{{"answer", said(scores)},
                          {"who", part_of_the_answer(scores[0], kNouns)},
                          {"did", part_of_the_answer(scores[1], kVerbs)},
                          {"whom", part_of_the_answer(scores[2], kNouns)}};
            }};
  });
}

std::vector<explain::Explanation> MultiHeadTask::explain(Input* input) {
  Part shown;
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t, std::string_view line) {
      if (const auto words = data::words(line); !words.empty()) shown.push_back(sentence_of(words));
    });
  } else {
    // Long sentences, or what there is.
    for (const size_t least : {size_t{5}, size_t{1}})
      for (size_t i = 0; i < test_.size() && shown.size() < kCompared; ++i)
        if (test_[i].words.size() >= least && (least == 5 || test_[i].words.size() < 5))
          shown.push_back(test_[i]);
  }
  data::Random random(data::mix(run_options_.seed, 0x5107));
  Part judged;  // new sentences show which head answers what
  for (int i = 0; i < 200; ++i) judged.push_back(draw(random));
  const std::array<int64_t, 3> heads = heads_of_slots(judged);
  if (input == nullptr) keep_telling(shown, heads);
  std::vector<explain::Explanation> all;
  for (size_t i = 0; i < shown.size(); ++i) {
    const Read read = read_items(shown, std::vector<int64_t>{static_cast<int64_t>(i)});
    const Shown one{.sentence = shown[i],
                    .weights = looks(read)[0],
                    .heads = heads,
                    .outcome = said(answers(read)[0]),
                    .mix = model_->mix,
                    .scale = fmt::format("1/√{}", run_options_.options.integer("width") /
                                                      run_options_.options.integer("heads"))};
    for (explain::Explanation& picture : pictures(one)) all.push_back(std::move(picture));
  }
  return all;
}

}  // namespace

std::unique_ptr<Task> make_multi_head(const RunOptions& run_options) {
  return std::make_unique<MultiHeadTask>(run_options);
}

}  // namespace fovea::systems::multi_head
