// Pre-training: words to guess, and whether one part of a text follows another.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>
#include <utility>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/formats/text.h"
#include "systems/bert/answers.h"
#include "systems/bert/masking.h"
#include "systems/bert/pairs.h"
#include "systems/bert/start.h"
#include "systems/bert/tasks.h"
#include "systems/bert/view.h"
#include "train/descent/finite.h"
#include "train/descent/fit.h"
#include "train/descent/optimiser.h"
#include "train/descent/recipe.h"
#include "train/interrupt.h"

namespace fovea::systems::bert {
namespace {

constexpr uint64_t kJudging = 2028;  // seed of the masks in evaluation: the same every time

class Pretraining : public BertTask<GradientTask> {
 public:
  explicit Pretraining(const RunOptions& run_options)
      : BertTask(run_options), run_options_(run_options), options_(run_options_.options) {}

  void read(const Source& source) override {
    for (auto& pairs : pairs_) pairs.reset();
    documents_ = source.path.empty()
                     ? generate_documents(source, options_.integer("documents"))
                     : read_documents(source, {.column = options_.integer("column"),
                                               .most = options_.integer("most_documents")});
  }
  std::string read_in_words() const override {
    const auto count = [&](Split split) { return documents_.splits.of(split).size(); };
    return fmt::format("{} documents: {} for training, {} for validation, {} for test",
                       documents_.texts.size(), count(Split::kTrain), count(Split::kValidation),
                       count(Split::kTest));
  }
  void prepare() override {
    std::vector<std::string> lines;
    for (const int64_t item : documents_.splits.train)
      for (const std::string& sentence : documents_.texts[static_cast<size_t>(item)])
        lines.push_back(sentence);
    start_.prepare(lines, {.pooler = true, .fill = true, .next = true});
  }

  int64_t items(Split split) const override { return pairs(split).size(); }
  std::vector<int64_t> lengths() const override {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < items(Split::kTrain); ++i)
      out.push_back(pairs(Split::kTrain).length(i));
    return out;
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    return documents_.splits.keys_of(split);
  }
  Loss loss(const fovea::Batch& batch) override {
    // Other masks and other negatives in each step: the seed is the step's own.
    data::Random random(batch.seed);
    const Guessed guessed = guess(pairs(Split::kTrain), batch.items, random);
    const auto entropy = [](const torch::Tensor& scores, const torch::Tensor& labels) {
      return torch::nn::functional::cross_entropy(scores, labels);
    };
    return {entropy(guessed.words, guessed.labels) + entropy(guessed.next, guessed.follows),
            guessed.labels.size(0)};
  }
  Evaluation evaluate(Split) override;
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override;

 private:
  struct Guessed {
    torch::Tensor words, labels;  // [places, vocabulary] and [places]
    torch::Tensor next, follows;  // [pairs, 2] and [pairs]: 0, the second part follows
  };
  const Pairs& pairs(Split split) const {
    auto& out = pairs_[static_cast<size_t>(split)];
    if (!out) {
      std::vector<const Sentences*> some;
      for (const int64_t item : documents_.splits.of(split))
        some.push_back(&documents_.texts[static_cast<size_t>(item)]);
      out.emplace(some, start_.pieces(), start_.sizes().context);
    }
    return *out;
  }
  // Test documents with a word hidden: those guessed rightly first, the rarest words first.
  struct Hidden {
    size_t document = 0;  // from 1
    std::string word, text = {};
    bool right = false;
    double sure = 0;
  };
  std::vector<Hidden> hidden_words();
  Guessed guess(const Pairs& from, std::span<const int64_t> items, data::Random& random);

  const RunOptions run_options_;
  const OptionValues& options_;
  Documents documents_;
  mutable std::optional<Pairs> pairs_[3];  // by split, made when first asked for
};

Pretraining::Guessed Pretraining::guess(const Pairs& from, std::span<const int64_t> items,
                                        data::Random& random) {
  const Sequences sequences = start_.sequences();
  std::vector<Sequence> all;
  std::vector<int64_t> places, labels, follows;
  int64_t before = 0;
  for (const int64_t item : items) {
    Pairs::Drawn drawn = from.draw(item, random);
    follows.push_back(drawn.follows ? 0 : 1);
    Sequence sequence = sequences.two(std::move(drawn.first), std::move(drawn.second));
    Masked changed = masked(sequence.ids, start_.pieces(), options_.number("masked"), random);
    for (const int64_t place : changed.places) places.push_back(before + place);
    labels.insert(labels.end(), changed.labels.begin(), changed.labels.end());
    sequence.ids = std::move(changed.ids);
    before += static_cast<int64_t>(sequence.ids.size());
    all.push_back(std::move(sequence));
  }
  std::vector<const Sequence*> pointers;
  for (const Sequence& one : all) pointers.push_back(&one);
  const torch::Device device = run_options_.device;
  const auto numbers = [&](const std::vector<int64_t>& values) {
    return torch::tensor(values, torch::kLong).to(device);
  };
  const nn::BertInput input = packed(pointers, device);
  BertModel& model = start_.model();
  const torch::Tensor states = model->encoder(input);
  Guessed out{.labels = numbers(labels), .follows = numbers(follows)};
  if (model->heads().fill) out.words = model->words_at(states, numbers(places));
  if (model->heads().next) out.next = model->next(model->pooled(states, input.offsets));
  return out;
}

Evaluation Pretraining::evaluate(Split split) {
  const torch::NoGradGuard no_grad;
  const Pairs& all = pairs(split);
  const auto judged = std::min(all.size(), options_.integer("judged"));
  std::vector<int64_t> some, lengths;
  for (int64_t i = 0; i < judged; ++i) {
    some.push_back(i * all.size() / judged);  // spread over the split
    lengths.push_back(all.length(some.back()));
  }
  double fill_loss = 0, filled = 0, places = 0, next_loss = 0, right = 0, pairs = 0;
  const auto summed = torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum);
  const auto hits = [](const torch::Tensor& scores, const torch::Tensor& labels) {
    return (scores.argmax(1) == labels).sum().item<double>();
  };
  data::Random random(kJudging);
  const int64_t at_once = 2 * train::recipe_of(options_).batch;
  for (const auto& batch : data::ordered_batches(judged, lengths, {.items = at_once})) {
    train::stop_if_interrupted("while judging");
    std::vector<int64_t> items;
    for (const int64_t i : batch) items.push_back(some[static_cast<size_t>(i)]);
    const Guessed guessed = guess(all, items, random);
    if (guessed.words.defined()) {
      train::finite(guessed.words, "scores");
      fill_loss += torch::nn::functional::cross_entropy(guessed.words, guessed.labels, summed)
                       .item<double>();
      filled += hits(guessed.words, guessed.labels);
      places += static_cast<double>(guessed.labels.size(0));
    }
    if (guessed.next.defined()) {
      next_loss += torch::nn::functional::cross_entropy(guessed.next, guessed.follows, summed)
                       .item<double>();
      right += hits(guessed.next, guessed.follows);
      pairs += static_cast<double>(items.size());
    }
  }
  Evaluation out;
  out.items = judged;
  if (places > 0) {
    out.metrics["mlm_accuracy"] = filled / places;
    out.metrics["mlm_loss"] = fill_loss / places;
  } else {
    out.notes.push_back("no head fills in words, so no mlm_accuracy");
  }
  if (pairs > 0) {
    out.metrics["nsp_accuracy"] = right / pairs;
    out.metrics["nsp_loss"] = next_loss / pairs;
  } else {
    out.notes.push_back("no head says what follows, so no nsp_accuracy");
  }
  if (places > 0 && pairs > 0) out.metrics["loss"] = fill_loss / places + next_loss / pairs;
  if (judged < all.size())
    out.notes.push_back(fmt::format("{} of {} pairs were judged (judged={})", judged, all.size(),
                                    options_.integer("judged")));
  return out;
}

void Pretraining::predict(Input input, std::ostream& out) {
  const Sequences sequences = start_.sequences();
  const std::string own = start_.model()->heads().fill ? "fill" : "embed";
  for (const char* other : {"class", "span"})
    if (is_asked(options_, other, own))
      throw UsageError(fmt::format(
          "answer: {}, expected fill, embed or states: this run is pre-training's", other));
  answer_in_batches(input, out,
                    {.at_once = static_cast<size_t>(train::recipe_of(options_).batch),
                     .read =
                         [&](std::string_view line) {
                           Sequence sequence = sequences.line(line);
                           // Refuses a line that has no place to fill.
                           if (is_asked(options_, "fill", own)) places_to_fill(start_, sequence);
                           return sequence;
                         },
                     .answers =
                         [&](const std::vector<const Sequence*>& some) {
                           auto common = common_lines(start_, options_, some, own);
                           return common ? *std::move(common)
                                         : filled_lines(start_, some, options_.integer("guesses"));
                         }});
}

// Each word of some length, hidden in turn, of the second sentence: a mask stands for one piece, so
// that a word of several cannot be guessed.
std::vector<Pretraining::Hidden> Pretraining::hidden_words() {
  constexpr size_t kTried = 24, kShortest = 4;
  std::vector<Hidden> all;
  std::map<std::string, size_t> seen;
  const std::vector<int64_t>& test = documents_.splits.test;
  for (size_t i = 0; i < std::min(test.size(), kTried); ++i) {
    const Sentences& sentences = documents_.texts[static_cast<size_t>(test[i])];
    const std::vector<std::string> words =
        data::words(sentences[std::min<size_t>(1, sentences.size() - 1)]);
    for (size_t at = 0; at < words.size(); ++at) {
      if (words[at].size() < kShortest) continue;
      ++seen[words[at]];
      std::vector<std::string> masked = words;
      Hidden one{.document = i + 1, .word = std::exchange(masked[at], "[MASK]")};
      one.text = fmt::format("{}\t{}", sentences[0], fmt::join(masked, " "));
      if (start_.model()->heads().fill) {
        const auto found = guesses(start_, start_.sequences().line(one.text), 1);
        if (found.empty() || found.back().empty()) continue;
        one.right = start_.pieces().piece(found.back()[0].piece) == data::lower_ascii(one.word);
        one.sure = found.back()[0].probability;
      }
      all.push_back(std::move(one));
    }
  }
  // A word that many documents have says little: the rarest that was guessed comes first.
  std::stable_sort(all.begin(), all.end(), [&](const Hidden& a, const Hidden& b) {
    if (a.right != b.right) return a.right;
    return seen[a.word] != seen[b.word] ? seen[a.word] < seen[b.word] : a.sure > b.sure;
  });
  // One of each document.
  std::vector<Hidden> out;
  for (Hidden& one : all)
    if (std::none_of(out.begin(), out.end(),
                     [&](const Hidden& other) { return other.document == one.document; }))
      out.push_back(std::move(one));
  return out;
}

std::vector<explain::Explanation> Pretraining::explain(Input* input) {
  const torch::NoGradGuard no_grad;
  const Sequences sequences = start_.sequences();
  std::vector<explain::Explanation> all;
  const auto show = [&](std::string_view text, const std::string& title) {
    for (explain::Explanation& picture : pictures(start_, sequences.line(text), title, ""))
      all.push_back(std::move(picture));
  };
  if (input != nullptr) {
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      if (!data::trimmed(line).empty()) show(line, fmt::format("Line {}", number));
    });
    if (all.empty()) throw data::FileError(input->name, 0, "no lines, expected at least one");
    return all;
  }
  constexpr size_t kShown = 3;
  const std::vector<Hidden> hidden = hidden_words();
  for (size_t i = 0; i < std::min(kShown, hidden.size()); ++i) {
    const Hidden& one = hidden[i];
    const size_t first = all.size();
    show(one.text, fmt::format("Test document {}", one.document));
    if (!start_.model()->heads().fill) continue;  // nothing was guessed
    explain::Explanation& picture = all[first];
    picture.outcome = fmt::format("{}: {}{}", one.right ? "right" : "wrong", picture.outcome,
                                  one.right ? "" : fmt::format(" (hidden: {})", one.word));
  }
  if (all.empty()) show("she works in the [MASK] .", "Example");
  return all;
}

Written Pretraining::write() const {
  Written out{.data = "documents.txt"};
  for (const Sentences& sentences : documents_.texts)
    out.files["documents.txt"] += fmt::format("{}\n\n", fmt::join(sentences, "\n"));
  return out;
}

}  // namespace

std::unique_ptr<Task> make_pretraining(const RunOptions& run_options) {
  return std::make_unique<Pretraining>(run_options);
}

}  // namespace fovea::systems::bert
