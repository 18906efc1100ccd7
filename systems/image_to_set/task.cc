#include "systems/image_to_set/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/batches.h"
#include "data/files/file.h"
#include "data/pictures/idx.h"
#include "data/pictures/image.h"
#include "data/pictures/picture_questions.h"
#include "data/random.h"
#include "systems/image_to_set/encoder.h"
#include "systems/image_to_set/naming.h"
#include "systems/image_to_set/sets.h"
#include "systems/image_to_set/targets.h"
#include "systems/image_to_set/view.h"
#include "systems/picture_lines.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::image_to_set {
namespace {

using Ids = std::vector<int64_t>;

class ImageToSet : public GradientTask {
 public:
  explicit ImageToSet(const RunOptions& run_options)
      : run_options_(run_options), side_(run_options.options.integer("side")) {}

  void read(const Source& source) override {
    set_ = read_picture_sets(source, run_options_.options);
    if (!model_) return;
    if (set_.pictures.regions.empty() != (regions_.width == 0) ||
        set_.pictures.regions.width() != regions_.width)
      throw data::FileError(
          source.path, 0,
          fmt::format("regions of {} numbers, expected {} as in the training (0: pictures)",
                      set_.pictures.regions.width(), regions_.width));
    targets_.encode(set_.labels);
  }
  std::string read_in_words() const override {
    std::string out = fmt::format("{} pictures", set_.labels.size());
    for (const std::string& note : set_.pictures.notes) out += "; " + note;
    return out;
  }
  void prepare() override {
    targets_.choose(set_.labels, set_.pictures.splits, run_options_.options.integer("labels"));
    regions_ = {.width = set_.pictures.regions.empty() ? 0 : set_.pictures.regions.width(),
                .count = set_.pictures.regions.empty() ? 0 : set_.pictures.regions.regions()};
    size_shares_.assign(static_cast<size_t>(targets_.largest()) + 1, 0);
    const Ids& training = set_.pictures.splits.train;
    for (const int64_t i : training)
      size_shares_[targets_.of(i).size()] += 1 / static_cast<float>(training.size());
  }
  Assets assets() const override {
    Json facts = targets_.facts("labels");
    facts["region_width"] = regions_.width;
    facts["regions"] = regions_.count;
    return {.facts = std::move(facts), .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    targets_.restore(facts, "labels");
    regions_ = {.width = facts.integer("region_width", 0, data::kWidestRegion),
                .count = facts.integer("regions", 0, data::kMostRegions)};
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    return model_ = std::make_shared<Network>(Sight{.grid = o.integer("grid"),
                                                    .filters = o.integer("filters"),
                                                    .inputs = regions_.width,
                                                    .width = o.integer("width")},
                                              Shape{.predictor = o.text("predictor"),
                                                    .cardinality = o.text("cardinality"),
                                                    .pool = o.text("pool"),
                                                    .labels = targets_.labels().size(),
                                                    .largest = targets_.largest(),
                                                    .may_be_empty = o.flag("empty"),
                                                    .width = o.integer("width"),
                                                    .heads = o.integer("heads"),
                                                    .layers = o.integer("layers"),
                                                    .dropout = o.number("dropout"),
                                                    .end_weight = o.number("end_weight"),
                                                    .size_weight = o.number("size_weight"),
                                                    .size_shares = size_shares_});
  }
  std::vector<uint64_t> item_keys(Split split) const override {
    return set_.pictures.splits.keys_of(split);
  }
  int64_t items(Split split) const override {
    return static_cast<int64_t>(set_.pictures.splits.of(split).size());
  }

  Loss loss(const Batch& batch) override {
    const Ids which = at_positions(set_.pictures.splits.train, batch.items);
    std::vector<LabelSet> sets = targets_.of(which);
    if (run_options_.options.text("order") == "shuffled") {
      data::Random random(batch.seed);
      for (LabelSet& set : sets) random.shuffle(set);
    }
    return {model_->predictor->loss(memory(which), sets), static_cast<int64_t>(which.size())};
  }

  Metrics validate() override {
    if (items(Split::kValidation) == 0) return {};
    const Ids& which = set_.pictures.splits.validation;
    tune(*model_->predictor, seen_items(which), targets_.of(which));
    return evaluate(Split::kValidation).metrics;
  }

  Evaluation evaluate(Split split) override {
    Evaluation out;
    out.items = items(split);
    if (out.items == 0) {
      out.notes.push_back("no pictures to evaluate, so no figures");
      return out;
    }
    const Ids& which = set_.pictures.splits.of(split);
    const std::vector<LabelSet> predicted = named(*model_->predictor, seen_items(which));
    targets_.add_scores(out, predicted, which, "labels of these pictures");
    if (split == Split::kTest) point(out, which, predicted);
    return out;
  }

  // A line is a picture, a folder of pictures, or an array of regions where the training had such.
  size_t lines_together() const override { return 1; }
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) {
      return answer_pictures(input, number, line, [&](const std::string& path) {
        const Named said = model_->predictor->name(seen(path)).front();
        const std::vector<std::string> labels = targets_.labels().names_of(said.labels);
        std::vector<std::string> p;
        for (const float one : said.probabilities) p.push_back(fmt::format("{:.4f}", one));
        return Answered{
            fmt::format("{}\t{}\t{}\n", path, fmt::join(labels, "|"), fmt::join(p, "|")),
            [path, labels, said] {
              return Json{
                  {"picture", path}, {"labels", labels}, {"probabilities", said.probabilities}};
            }};
      });
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    if (input) {
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        each_picture(*input, number, line, [&](const std::string& path) {
          ShownSet shown = told(path, seen(path));
          if (regions_.width == 0)
            shown.image = data::shrunk(data::PictureStore("", side_).whole(path), kLongest);
          out.push_back(picture(shown));
        });
      });
      return out;
    }
    constexpr size_t kShown = 4, kJudged = 1000;
    for (const int64_t i : set_.pictures.splits.test) {
      if (out.size() == kShown) break;
      const auto at = static_cast<size_t>(i);
      const std::string& image = set_.pictures.items[at].image;
      const std::vector<std::string> labels = targets_.labels().names_of(targets_.of(i));
      const bool drawn_here = image.rfind(".idx#") != std::string::npos;
      ShownSet shown = told(!drawn_here      ? image
                            : labels.empty() ? "nothing"
                                             : fmt::format("{}", fmt::join(labels, ", ")),
                            memory({i}));
      shown.image = drawn(i);
      if (regions_.width > 0 && shown.image.pixels.empty()) continue;
      shown.is_known = true;
      shown.expected = labels;
      shown.boxes = set_.pictures.items[at].boxes;
      out.push_back(picture(shown));
    }
    Ids judged = set_.pictures.splits.test;
    judged.resize(std::min(judged.size(), kJudged));
    for (auto& one : statistics({.names = targets_.labels().names(),
                     .predicted = named(*model_->predictor, seen_items(judged)),
                     .truth = targets_.of(judged)}))
      out.push_back(std::move(one));
    return out;
  }

  Written write() const override { return write_picture_sets(set_, side_); }

 private:
  Memory memory(const Ids& which) {
    torch::Tensor seen;
    if (regions_.width > 0) {
      const data::Regions& from = set_.pictures.regions;
      seen = torch::empty({static_cast<int64_t>(which.size()), from.regions(), from.width()});
      for (size_t i = 0; i < which.size(); ++i)
        from.copy(which[i],
                  seen.data_ptr<float>() + static_cast<int64_t>(i) * from.regions() * from.width());
    } else {
      std::vector<const std::vector<uint8_t>*> pictures;
      for (const int64_t i : which) pictures.push_back(&set_.pixels[static_cast<size_t>(i)]);
      seen = pixels_of(pictures, side_);
    }
    return model_->encoder->forward(seen.to(run_options_.device));
  }
  Memory seen(const std::string& path) {
    torch::Tensor one;
    if (regions_.width > 0) {
      const data::Regions from = data::read_region_file(path);
      if (from.width() != regions_.width)
        throw data::FileError(path, 0,
                              fmt::format("regions of {} numbers, expected {} as in the training",
                                          from.width(), regions_.width));
      one = torch::empty({1, from.regions(), from.width()});
      from.copy(0, one.data_ptr<float>());
    } else {
      const std::vector<uint8_t> pixels = data::PictureStore("", side_).at(path);
      one = pixels_of({&pixels}, side_);
    }
    return model_->encoder->forward(one.to(run_options_.device));
  }

  Seen seen_items(const Ids& which) {
    return {which, [this](const Ids& items) { return memory(items); }, kBatch};
  }

  // Of the labels that were named rightly and whose place is known: does the largest weight, in the
  // mean of the last layer's heads, lie there?
  void point(Evaluation& out, const Ids& which, const std::vector<LabelSet>& predicted) {
    const int64_t grid = this->grid();
    double hits = 0, known = 0;
    for (size_t i = 0; i < which.size(); ++i) {
      const auto& boxes = set_.pictures.items[static_cast<size_t>(which[i])].boxes;
      if (boxes.empty() || predicted[i].empty() || grid == 0) continue;
      const auto weights = model_->predictor->weights_of(memory({which[i]}), predicted[i]);
      if (weights.empty()) return;
      const torch::Tensor best = weights.back().mean(0).argmax(1).cpu();
      for (size_t k = 0; k < predicted[i].size(); ++k)
        for (const auto& [label, box] : boxes)
          if (label == targets_.labels().names()[static_cast<size_t>(predicted[i][k])]) {
            known += 1;
            hits += lies_in(best[static_cast<int64_t>(k)].item<int64_t>(), grid, box);
          }
    }
    if (known > 0) out.attention["hit_rate"] = hits / known;
  }

  // Regions in a square: its side; 0: they are in no square.
  int64_t grid() const {
    if (regions_.width == 0) return run_options_.options.integer("grid");
    const auto side = static_cast<int64_t>(std::lround(std::sqrt(regions_.count)));
    return side * side == regions_.count ? side : 0;
  }

  data::Image drawn(int64_t item) const {
    if (set_.pictures.folder.empty())
      return {side_, side_, 3, set_.pixels[static_cast<size_t>(item)]};
    return data::shrunk(set_.pictures.drawn(item), kLongest);
  }

  ShownSet told(const std::string& name, const Memory& memory) {
    const Named said = model_->predictor->name(memory).front();
    return {.name = name,
            .image = {},
            .regions = memory.keys.size(1),
            .grid = grid(),
            .pools_by_mean = !model_->predictor->predictor().steps() &&
                             run_options_.options.text("pool") == "mean",
            .labels = targets_.labels().names_of(said.labels),
            .probabilities = said.probabilities,
            .expected = {},
            .weights = model_->predictor->weights_of(memory, said.labels)};
  }

  static constexpr size_t kBatch = 256;
  static constexpr int64_t kLongest = 448;  // pixels of a side that is drawn

  struct RegionShape {
    int64_t width = 0, count = 0;  // 0: pictures
  };

  const RunOptions run_options_;
  const int64_t side_;
  PictureSets set_;
  Targets targets_;
  std::vector<float> size_shares_;  // of the training
  RegionShape regions_;
  std::shared_ptr<Network> model_;
};

}  // namespace

std::unique_ptr<Task> make_image_to_set(const RunOptions& run_options) {
  return std::make_unique<ImageToSet>(run_options);
}

}  // namespace fovea::systems::image_to_set
