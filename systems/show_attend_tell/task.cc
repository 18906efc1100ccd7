#include "systems/show_attend_tell/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/generated/canvas_files.h"
#include "metrics/captions.h"
#include "systems/picture_lines.h"
#include "systems/show_attend_tell/gallery.h"
#include "systems/show_attend_tell/lines.h"
#include "systems/show_attend_tell/losses.h"
#include "systems/show_attend_tell/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/descent/finite.h"
#include "train/fields.h"
#include "train/interrupt.h"

namespace fovea::systems::show_attend_tell {
namespace {

using Ids = std::vector<int64_t>;

constexpr const char* kVocabularyFile = "vocabulary";
constexpr int64_t kDigits = 6000, kTestDigits = 1500;  // generated
constexpr int64_t kSearched = 64;                      // pictures at a time

Looks looks_named(const std::string& name) {
  if (name == "soft") return Looks::kSoft;
  if (name == "hard") return Looks::kHard;
  return name == "none" ? Looks::kNone : Looks::kStart;
}

class ShowAttendTell : public GradientTask {
 public:
  explicit ShowAttendTell(const RunOptions& run_options)
      : run_options_(run_options), gallery_(run_options.options) {}

  void read(const Source& source) override {
    const RegionShape known = gallery_.shape();
    if (source.path.empty() || data::is_mnist(source.path)) {
      generate(source);
    } else {
      set_ = data::read_captions(source.path, {.split = split_request(source)});
      gallery_.fill(set_);
    }
    const RegionShape& found = gallery_.shape();
    if (restored_ && (found.count != known.count || found.width() != known.width()))
      throw data::FileError(
          source.path, 0,
          fmt::format("{} regions of {} numbers, expected {} of {} as in training", found.count,
                      found.width(), known.count, known.width()));
    if (restored_) encode();
  }
  std::string read_in_words() const override {
    size_t captions = 0;
    for (const data::Captioned& item : set_.items) captions += item.captions.size();
    std::string out =
        fmt::format("{} pictures, {} captions, {} regions of {} numbers", set_.items.size(),
                    captions, gallery_.shape().count, gallery_.shape().width());
    for (const std::string& note : set_.notes) out += "; " + note;
    return out;
  }

  void prepare() override {
    std::vector<std::vector<std::string>> captions;
    for (const int64_t item : set_.splits.train)
      for (const std::string& caption : set_.items[static_cast<size_t>(item)].captions)
        captions.push_back(data::caption_words(caption));
    vocabulary_ =
        data::Vocabulary::of(captions, {.least_count = run_options_.options.integer("rare")});
    encode();
  }
  Assets assets() const override {
    const RegionShape& shape = gallery_.shape();
    return {.facts = {{"side", shape.side},
                      {"grid", shape.grid},
                      {"channels", shape.channels},
                      {"array_width", shape.array_width},
                      {"regions", shape.count}},
            .files = {{kVocabularyFile, vocabulary_.text()}}};
  }
  void restore(const Assets& assets) override {
    vocabulary_ = data::Vocabulary::parse(train::file_of(assets, kVocabularyFile), kVocabularyFile);
    const train::Fields facts(assets.facts, "facts.");
    gallery_.restore({.side = facts.integer("side", 0, data::kWidestPicture),
                      .grid = facts.integer("grid", 0, 64),
                      .channels = facts.integer("channels", 0, 4096),
                      .array_width = facts.integer("array_width", 0, data::kWidestRegion),
                      .count = facts.integer("regions", 1, data::kMostRegions)});
    restored_ = true;
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    model_ = std::make_shared<Model>(Shape{.words = vocabulary_.size(),
                                           .regions = gallery_.shape(),
                                           .embedding = o.integer("embedding"),
                                           .width = o.integer("width"),
                                           .attention = o.integer("attention"),
                                           .dropout = o.number("dropout"),
                                           .looks = looks_named(o.text("looks"))});
    if (!restored_ && gallery_.shape().side == 0) {
      const auto [mean, deviation] = gallery_.moments(set_.splits.train);
      model_->standardise(mean, deviation);
    }
    return model_;
  }
  std::vector<uint64_t> item_keys(Split split) const override { return set_.splits.keys_of(split); }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(split == Split::kTrain ? lines_.size()
                                                       : set_.splits.of(split).size());
  }
  std::vector<int64_t> lengths() const override {
    Ids out;
    for (const Line& line : lines_) out.push_back(static_cast<int64_t>(line.ids.size()) + 1);
    return out;
  }

  Loss loss(const Batch& batch) override {
    const Lines lines = batch_of(lines_, batch.items, run_options_.device);
    const OptionValues& o = run_options_.options;
    const Told told = tell(lines);
    const Losses all = losses(*model_, told, lines.targets, lines.real,
                              {.coverage = o.number("coverage"),
                               .share = o.text("target") == "share",
                               .reward = o.number("reward"),
                               .entropy = o.number("entropy")});
    return {all.total, lines.targets.size(0)};
  }

  Evaluation evaluate(Split split) override {
    return judge(split, run_options_.options.integer("beam"));
  }
  // Greedy search is enough to choose an epoch by.
  Metrics validate() override {
    return items(Split::kValidation) ? judge(Split::kValidation, 1).metrics : Metrics{};
  }

  // A line is a picture, an array of regions, or a folder of pictures.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) {
      return answer_pictures(input, number, line,
                             [&](const std::string& path) { return answer(path); });
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    constexpr size_t kShown = 4, kTried = 12;
    std::vector<explain::Explanation> out;
    const auto add = [&](const torch::Tensor& seen, Shown shown) {
      look(seen, shown);
      out.push_back(picture(shown, model_->shape()));
    };
    if (!input) {
      for (const int64_t item : set_.splits.test) {
        if (out.size() >= kTried) break;
        const data::Captioned& one = set_.items[static_cast<size_t>(item)];
        add(gallery_.of(std::span(&item, 1)),
            {.name = one.captions.size() == 1 ? one.captions[0] : one.image,
             .words = {},
             .references = one.captions,
             .picture = gallery_.drawn(set_, item),
             .boxes = one.boxes});
      }
      // Where one caption is the right one, those that were told rightly come first.
      std::stable_partition(out.begin(), out.end(), [](const explain::Explanation& one) {
        return one.outcome.starts_with("right: ");
      });
      out.resize(std::min(out.size(), kShown));
      return out;
    }
    data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
      each_picture(*input, number, line, [&](const std::string& file) {
        add(gallery_.read(file), {.name = file, .words = {}, .picture = gallery_.drawn(file)});
      });
    });
    return out;
  }

  Written write() const override {
    return {.files = data::picture_files(set_.items, gallery_.pixels()),
            .truth = "\"boxes\" of each line: where the thing is that a word names"};
  }

 private:
  void generate(const Source& source) {
    const OptionValues& o = run_options_.options;
    const int64_t train = o.integer("pictures");
    const data::DigitSets digits = data::digits_of(source.path, kDigits, kTestDigits, source.seed);
    const data::Canvases canvases = data::caption_canvases(
        {.side = gallery_.shape().side > 0 ? gallery_.shape().side : o.integer("side"),
         .parts = {.train = train, .validation = train / 8, .test = train / 4},
         .seed = source.seed},
        digits);
    data::DrawnPictures pictures = data::pictures_of(canvases);
    set_ = std::move(pictures.set);
    for (size_t i = 0; i < set_.items.size(); ++i)
      set_.items[i].captions = {data::caption_of(canvases.items[i])};
    gallery_.fill(std::move(pictures.pixels), canvases.side);
  }

  void encode() {
    int64_t cut = 0;
    lines_ = lines_of(set_, set_.splits.train, vocabulary_, run_options_.options.integer("longest"),
                      cut);
    if (cut > 0)
      set_.notes.push_back(
          fmt::format("{} captions are longer than longest={} words: their ends are "
                      "not learnt",
                      cut, run_options_.options.integer("longest")));
  }

  Told tell(const Lines& lines) {
    return model_->tell(model_->see(gallery_.of(lines.items).to(run_options_.device)), lines.words,
                        lines.real);
  }

  nn::BeamOptions search_options(int64_t beam) const {
    return {.beam = beam,
            .length_alpha = run_options_.options.number("alpha"),
            .begin = data::kBos,
            .end = data::kEos,
            .never = {data::kPad, data::kUnk, data::kBos},
            .doubles = false,
            .no_repeat = run_options_.options.integer("no_repeat")};
  }
  std::vector<nn::Hypothesis> told(const torch::Tensor& pictures, int64_t beam) {
    const torch::NoGradGuard no_grad;
    const auto speaker = speak(*model_, pictures.to(run_options_.device));
    const Ids most(static_cast<size_t>(pictures.size(0)),
                   run_options_.options.integer("longest") + 1);
    std::vector<nn::Hypothesis> out;
    for (nn::SearchResult& one : nn::beam_search(*speaker, most, search_options(beam)))
      out.push_back(one.n_best.empty() ? nn::Hypothesis{} : std::move(one.n_best.front()));
    return out;
  }

  Answered answer(const std::string& path) {
    const nn::Hypothesis one =
        told(gallery_.read(path), run_options_.options.integer("beam")).front();
    const std::string caption =
        fmt::format("{}", fmt::join(words_of(one.tokens, vocabulary_), " "));
    return {fmt::format("{}\t{}\n", path, caption), [=] {
              return Json{
                  {"picture", path}, {"answer", caption}, {"log_probability", one.log_probability}};
            }};
  }

  // Searches the caption, then goes through it again for the weights.
  void look(const torch::Tensor& pictures, Shown& shown) {
    const torch::NoGradGuard no_grad;
    const nn::Hypothesis best = told(pictures, run_options_.options.integer("beam")).front();
    shown.words = words_of(best.tokens, vocabulary_);
    shown.log_probability = best.log_probability;
    const Seen seen = model_->see(pictures.to(run_options_.device));
    State state = model_->start(seen);
    std::vector<torch::Tensor> weights, gates;
    int64_t last = data::kBos;
    if (shown.words.empty()) shown.words = {"(nothing)"};
    for (size_t t = 0; t < shown.words.size(); ++t) {
      const Model::Step step =
          model_->step(seen, state, torch::tensor({last}).to(run_options_.device));
      weights.push_back(step.weights.defined()
                            ? step.weights[0].cpu()
                            : torch::full({gallery_.shape().count},
                                          1 / static_cast<double>(gallery_.shape().count)));
      gates.push_back(step.gate.cpu());
      if (t < best.tokens.size()) last = best.tokens[t];
    }
    shown.weights = torch::stack(weights);
    shown.gates = torch::cat(gates);
  }

  // Words as told against the captions, and where each named thing was looked for while the true caption
  // was read.
  Evaluation judge(Split split, int64_t beam) {
    const Ids& which = set_.splits.of(split);
    Evaluation out;
    out.items = static_cast<int64_t>(which.size());
    if (which.empty()) {
      out.notes.push_back("no pictures to evaluate, so no figures");
      return out;
    }
    std::vector<metrics::CaptionWords> captions;
    std::vector<std::vector<metrics::CaptionWords>> references;
    double exact = 0;
    for (size_t from = 0; from < which.size(); from += kSearched) {
      train::stop_if_interrupted("while telling");
      const std::span some =
          std::span(which).subspan(from, std::min<size_t>(kSearched, which.size() - from));
      const std::vector<nn::Hypothesis> found = told(gallery_.of(some), beam);
      for (size_t i = 0; i < some.size(); ++i) {
        captions.push_back(words_of(found[i].tokens, vocabulary_));
        references.emplace_back();
        for (const std::string& one : set_.items[static_cast<size_t>(some[i])].captions)
          references.back().push_back(data::caption_words(one));
        exact += std::find(references.back().begin(), references.back().end(), captions.back()) !=
                 references.back().end();
      }
    }
    const auto bleu = metrics::caption_bleu(captions, references);
    for (size_t n = 1; n < bleu.size(); ++n) out.metrics[fmt::format("bleu{}", n)] = bleu[n - 1];
    out.metrics["bleu"] = bleu.back();
    out.metrics["cider"] = metrics::cider_d(captions, references);
    out.metrics["exact"] = exact / static_cast<double>(which.size());
    read_again(split, out);
    out.notes.push_back("bleu is BLEU-4 as pycocoevalcap computes it: " +
                        metrics::caption_signature(references));
    return out;
  }

  void read_again(Split split, Evaluation& out) {
    const torch::NoGradGuard no_grad;
    int64_t cut = 0;
    const std::vector<Line> lines = lines_of(set_, set_.splits.of(split), vocabulary_,
                                             run_options_.options.integer("longest"), cut);
    double loss = 0, words = 0, named = 0, found = 0;
    for (const auto& positions :
         data::ordered_batches(static_cast<int64_t>(lines.size()), {}, {.items = 128})) {
      train::stop_if_interrupted("while judging");
      const Lines batch = batch_of(lines, positions, run_options_.device);
      const Told told = tell(batch);
      const torch::Tensor log_p =
          train::finite(told.logits, "logits").to(torch::kFloat64).log_softmax(1);
      loss -= log_p.gather(1, batch.targets.unsqueeze(1)).sum().item<double>();
      words += static_cast<double>(batch.targets.size(0));
      if (!told.weights.defined() || gallery_.shape().grid == 0) continue;
      const torch::Tensor heaviest = told.weights.argmax(2).cpu();
      for (size_t i = 0; i < positions.size(); ++i) {
        const Line& line = lines[static_cast<size_t>(positions[i])];
        for (size_t t = 0; t < line.ids.size(); ++t) {
          const int hit = points(
              line, t, heaviest[static_cast<int64_t>(i)][static_cast<int64_t>(t)].item<int64_t>());
          named += hit >= 0;
          found += hit > 0;
        }
      }
    }
    out.metrics["loss"] = loss / words;
    out.metrics["perplexity"] = std::exp(loss / words);
    if (named > 0) out.attention["hit_rate"] = found / named;
  }
  // Whether the region shows what the word names; -1: it names nothing.
  int points(const Line& line, size_t word, int64_t region) const {
    int out = -1;
    for (const auto& [name, box] : set_.items[static_cast<size_t>(line.item)].boxes)
      if (vocabulary_.id(name) == line.ids[word])
        out = std::max<int>(out, points_at(box, region, gallery_.shape().grid));
    return out;
  }

  const RunOptions run_options_;
  Gallery gallery_;
  data::CaptionSet set_;
  data::Vocabulary vocabulary_;
  std::vector<Line> lines_;  // to learn from
  bool restored_ = false;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_show_attend_tell(const RunOptions& run_options) {
  return std::make_unique<ShowAttendTell>(run_options);
}

}  // namespace fovea::systems::show_attend_tell
