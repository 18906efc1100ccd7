#include "systems/stacked_attention/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <map>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/packed.h"
#include "data/pictures/picture_questions.h"
#include "data/pictures/question_codec.h"
#include "data/formats/text.h"
#include "systems/stacked_attention/model.h"
#include "systems/stacked_attention/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"
#include "train/descent/finite.h"
#include "train/interrupt.h"

namespace fovea::systems::stacked_attention {
namespace {

using Ids = std::vector<int64_t>;

constexpr const char* kVocabularyFile = "vocabulary";

class StackedAttention : public GradientTask {
 public:
  explicit StackedAttention(const RunOptions& run_options)
      : run_options_(run_options), side_(run_options.options.integer("side")) {}

  std::string read_in_words() const override {
    return fmt::format("{} questions", set_.questions.size());
  }
  void read(const Source& source) override {
    if (source.path.empty() && side_ != data::kGridCells * data::kCellPixels)
      throw UsageError(fmt::format("--set side={}: generated pictures have {}", side_,
                                   data::kGridCells * data::kCellPixels));
    set_ = source.path.empty()
               ? data::generate_shape_grids(run_options_.options.integer("pictures"), source.seed)
               : data::read_picture_questions(source.path,
                                              {.side = side_, .split = split_request(source)});
    const auto cells = run_options_.options.integer("grid") * run_options_.options.integer("grid");
    for (const data::PictureQuestion& one : set_.questions)
      for (const int64_t cell : one.cells)
        if (cell >= cells)
          throw data::FileError(source.path, 0,
                                fmt::format("cell {}, expected 1 to {}", cell + 1, cells));
    if (model_) encode();
  }

  void prepare() override {
    codec_ = data::QuestionCodec(set_, run_options_.options.integer("answers"));
    encode();
    // A question whose answer is not in the list teaches nothing.
    std::erase_if(set_.splits.train,
                  [&](int64_t i) { return labels_[static_cast<size_t>(i)] < 0; });
  }
  Assets assets() const override {
    return {.facts = {{"answers", codec_.answers()}}, .files = {{kVocabularyFile, codec_.text()}}};
  }
  void restore(const Assets& assets) override {
    codec_ = {train::file_of(assets, kVocabularyFile), kVocabularyFile,
              train::Fields(assets.facts, "facts.").texts("answers")};
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    return model_ = std::make_shared<Model>(
               Shape{.words = codec_.words(),
                     .answers = static_cast<int64_t>(codec_.answers().size()),
                     .width = o.integer("width"),
                     .attention = o.integer("attention"),
                     .hops = o.integer("hops"),
                     .grid = o.integer("grid"),
                     .side = side_,
                     .question = o.text("question"),
                     .dropout = o.number("dropout"),
                     .narrowness = o.number("narrowness")});
  }
  std::vector<uint64_t> item_keys(Split split) const override { return set_.splits.keys_of(split); }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(set_.splits.of(split).size());
  }

  Loss loss(const Batch& batch) override {
    const Ids which = at_positions(set_.splits.train, batch.items);
    return {torch::nn::functional::cross_entropy(
                look(which).logits, data::gather(labels_, which).to(run_options_.device)),
            static_cast<int64_t>(which.size())};
  }

  Evaluation evaluate(Split split) override {
    const auto hops = static_cast<size_t>(run_options_.options.integer("hops"));
    std::vector<double> found(hops), known(hops);
    std::map<size_t, std::pair<double, double>>
        by_looks;  // of questions that need so many: all, credit
    double loss = 0, judged = 0, credit = 0, everywhere = 0, all_known = 0;
    for (const auto& positions : data::ordered_batches(items(split), {}, {.items = 256})) {
      train::stop_if_interrupted("while judging");
      const Ids which = at_positions(set_.splits.of(split), positions);
      const Look seen = look(which);
      const torch::Tensor scores =
          train::finite(seen.logits, "logits").to(torch::kFloat64).log_softmax(1).cpu();
      const torch::Tensor best = scores.argmax(1);
      std::vector<torch::Tensor> heaviest;
      for (size_t hop = 0; hop < hops; ++hop)
        heaviest.push_back(Model::weights_of(seen, hop).argmax(1).cpu());
      for (size_t i = 0; i < which.size(); ++i) {
        const auto row = static_cast<int64_t>(i);
        const data::PictureQuestion& one = set_.questions[static_cast<size_t>(which[i])];
        const int64_t label = labels_[static_cast<size_t>(which[i])];
        if (label >= 0) loss -= scores[row][label].item<double>();
        judged += label >= 0;
        const double agreed =
            data::agreement(one.answers, codec_.answer(best[row].item<int64_t>()));
        credit += agreed;
        auto& [asked, right] = by_looks[one.cells.size()];
        asked += 1;
        right += agreed;
        const Ids wanted = wanted_of(one);
        bool all = true, any = false;
        for (size_t hop = 0; hop < hops; ++hop) {
          if (wanted[hop] < 0) continue;
          const bool hit = heaviest[hop][row].item<int64_t>() == wanted[hop];
          known[hop] += 1;
          found[hop] += hit;
          any = true;
          all = all && hit;
        }
        all_known += any;
        everywhere += any && all;
      }
    }
    Evaluation out;
    out.items = items(split);
    const auto n = static_cast<double>(out.items);
    if (out.items == 0) {
      out.notes.push_back("no questions to evaluate, so no figures");
      return out;
    }
    if (judged > 0) out.metrics["loss"] = loss / judged;
    out.metrics["accuracy"] = credit / n;
    for (const auto& [looks, counts] : by_looks)
      if (looks > 0 && by_looks.size() > 1)
        out.metrics[fmt::format("accuracy_{}_cell{}", looks, looks == 1 ? "" : "s")] =
            counts.second / counts.first;
    if (all_known > 0) out.attention["hit_rate"] = everywhere / all_known;
    for (size_t hop = 0; hop < hops; ++hop)
      if (known[hop] > 0)
        out.attention[fmt::format("hit_rate_hop{}", hop + 1)] = found[hop] / known[hop];
    if (judged < n)
      out.notes.push_back(fmt::format(
          "{:.0f} questions have an answer outside of the list: they count as wrong", n - judged));
    return out;
  }

  // A line: picture<TAB>question, or {"picture", "question"}; pictures are paths, as in a shell.
  void predict(Input input, std::ostream& out) override {
    data::PictureStore store("", side_);
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const auto& [shown, seen] =
          tell(data::parse_picture_question(line, input.name, number), store);
      const std::vector<std::string> unknown = codec_.unknown(shown.question);
      if (input.noted && !unknown.empty())
        input.noted(fmt::format("{}:{}: never seen in training: {}", input.name, number,
                                data::listed(unknown)));
      Ids cells;
      for (size_t hop = 0; hop < seen.query.size(); ++hop)
        cells.push_back(Model::weights_of(seen, hop).argmax().item<int64_t>() + 1);
      return {fmt::format("{}\t{:.4f}\tcells {}\n", shown.answer, shown.probability,
                          fmt::join(cells, " ")),
              [this, cells, p = seen.logits.softmax(1)[0]] {
                Json fields = class_fields(codec_.answers(), to_floats(p));
                fields["cells"] = cells;
                return fields;
              }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    const auto add = [&](const data::PictureQuestion& question, std::vector<uint8_t> pixels) {
      const auto [shown, seen] = tell(question, std::move(pixels));
      out.push_back(picture(shown, seen));
    };
    if (input) {
      data::PictureStore store("", side_);
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        const data::PictureQuestion one = data::parse_picture_question(line, input->name, number);
        add(one, store.at(one.picture));
      });
      return out;
    }
    constexpr size_t kShown = 4;
    for (const int64_t i : set_.splits.test)
      if (out.size() < kShown)
        add(set_.questions[static_cast<size_t>(i)], set_.pictures[static_cast<size_t>(i)]);
    return out;
  }

  Written write() const override {
    return {.files = data::picture_question_files(set_, side_),
            .truth = "\"cells\" of each line: the regions to look at, hop by hop"};
  }

 private:
  // For each hop its region, the last for the last; -1: not known.
  Ids wanted_of(const data::PictureQuestion& one) const {
    const auto hops = run_options_.options.integer("hops");
    Ids out(static_cast<size_t>(hops), -1);
    const auto known = static_cast<int64_t>(one.cells.size());
    for (int64_t k = 1; k <= std::min(hops, known); ++k)
      out[static_cast<size_t>(hops - k)] = one.cells[static_cast<size_t>(known - k)];
    return out;
  }

  void encode() {
    words_.clear();
    labels_.clear();
    for (const data::PictureQuestion& one : set_.questions) {
      words_.push_back(codec_.ids(one.question));
      labels_.push_back(codec_.label(one));
    }
  }

  Look look(const Ids& which) {
    std::vector<const std::vector<uint8_t>*> pictures;
    std::vector<const Ids*> words;
    for (const int64_t i : which) {
      pictures.push_back(&set_.pictures[static_cast<size_t>(i)]);
      words.push_back(&words_[static_cast<size_t>(i)]);
    }
    return look(pictures, words);
  }
  Look look(const std::vector<const std::vector<uint8_t>*>& pictures,
            const std::vector<const Ids*>& words) {
    const auto n = static_cast<int64_t>(pictures.size());
    size_t longest = 1;
    for (const Ids* one : words) longest = std::max(longest, one->size());
    torch::Tensor ids = torch::zeros({n, static_cast<int64_t>(longest)}, torch::kInt64),
                  lengths = torch::empty({n}, torch::kInt64),
                  pixels = torch::empty({n, side_, side_, 3}, torch::kUInt8);
    for (int64_t i = 0; i < n; ++i) {
      const auto at = static_cast<size_t>(i);
      lengths[i] = static_cast<int64_t>(words[at]->size());
      std::copy(words[at]->begin(), words[at]->end(),
                ids.data_ptr<int64_t>() + i * static_cast<int64_t>(longest));
      std::copy(pictures[at]->begin(), pictures[at]->end(),
                pixels.data_ptr<uint8_t>() + i * side_ * side_ * 3);
    }
    const torch::Tensor colours =
        pixels.permute({0, 3, 1, 2}).to(torch::kFloat32).contiguous() / 127.5 - 1;
    return model_->look(colours.to(run_options_.device), ids.to(run_options_.device),
                        lengths.to(run_options_.device));
  }

  std::pair<Shown, Look> tell(const data::PictureQuestion& question, data::PictureStore& store) {
    return tell(question, store.at(question.picture));
  }
  std::pair<Shown, Look> tell(const data::PictureQuestion& question, std::vector<uint8_t> pixels) {
    const Ids words = codec_.ids(question.question);
    Look seen = look({&pixels}, {&words});
    const torch::Tensor p = seen.logits.softmax(1)[0];
    return {Shown{.question = question.question,
                  .answer = codec_.answer(p.argmax().item<int64_t>()),
                  .expected = question.answers.empty() ? "" : data::commonest(question.answers),
                  .probability = p.max().item<double>(),
                  .pixels = std::move(pixels),
                  .side = side_,
                  .grid = run_options_.options.integer("grid"),
                  .cells = wanted_of(question)},
            std::move(seen)};
  }

  const RunOptions run_options_;
  const int64_t side_;
  data::PictureQuestions set_;
  data::QuestionCodec codec_;
  std::vector<Ids> words_;  // of each question
  Ids labels_;              // -1: not in the list
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_stacked_attention(const RunOptions& run_options) {
  return std::make_unique<StackedAttention>(run_options);
}

}  // namespace fovea::systems::stacked_attention
