#include "systems/pooling/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/bags.h"
#include "data/packed.h"
#include "systems/pooling/model.h"
#include "systems/pooling/questions.h"
#include "systems/pooling/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::pooling {
namespace {

class Pooling : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    splits_ = {};
    lengths_.clear();
    bags_ = source.path.empty() ? generate(run_options_.options.text("question"),
                                           run_options_.options.integer("bags"), source.seed)
                                : data::read_bags(source.path);
    if (!scaling_.mean.empty()) {
      data::arrange(bags_, {.width = inputs_, .names = columns_}, source.path);
      data::apply(scaling_, bags_);
    }
    labels_ = bags_.labels;
    if (!source.path.empty()) {
      data::check_binary(bags_, source.path);
      if (!source.all_test) data::check_both_labels(bags_, source.path);
    }
    for (const auto& features : bags_.features)
      lengths_.push_back(static_cast<int64_t>(features.size()) / bags_.width);
    generated_ = source.path.empty();
    data::SplitRequest request = split_request(source);
    request.test = 0.2;
    request.keys = data::keys_of(bags_);
    request.classes = labels_;
    splits_ = data::split(static_cast<int64_t>(bags_.size()), request);
  }
  std::string read_in_words() const override { return data::in_words(bags_); }

  void prepare() override {
    inputs_ = bags_.width;
    columns_ = bags_.columns;
    // Generated points need no scaling, so later data of the run are not scaled either.
    if (generated_)
      scaling_ = {std::vector<float>(2, 0.0f), std::vector<float>(2, 1.0f)};
    else
      scaling_ = data::scaling_of(bags_, splits_.train);
    data::apply(scaling_, bags_);
  }
  Assets assets() const override {
    return {.facts = {{"inputs", inputs_},
                      {"columns", columns_},
                      {"mean", scaling_.mean},
                      {"deviation", scaling_.deviation}},
            .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    inputs_ = facts.integer("inputs", 1, data::kMostFeatures);
    if (facts.has("columns"))  // older runs: none
      columns_ = data::kept_features(inputs_, facts.texts("columns")).names;
    scaling_ = data::kept_scaling(facts.numbers("mean"), facts.numbers("deviation"), inputs_);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(inputs_, run_options_.options.integer("width"),
                                            run_options_.options.text("pool"));
  }
  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(
        data::pack_features(bags_.features, bags_.width, items).to(run_options_.device));
  }

  // A CSV of bags; the label column may be there and is not read.
  void predict(Input input, std::ostream& out) override {
    const data::Bags bags = bags_in(input);
    for (size_t i = 0; i < bags.size(); ++i) {
      const int64_t item = static_cast<int64_t>(i);
      const torch::Tensor both =
          model_
              ->forward(data::pack_features(bags.features, bags.width, std::span(&item, 1))
                            .to(run_options_.device))
              .softmax(1)[0];
      const double p = both[1].item<double>();
      write_answer(
          out, i + 1,
          {fmt::format("{}\t{}\t{:.4f}\n", bags.names[i], p > 0.5 ? 1 : 0, std::max(p, 1 - p)),
           [&] {
             Json fields = {{"bag", bags.names[i]}};
             fields.update(class_fields({"0", "1"}, to_floats(both)));
             return fields;
           }});
    }
  }

  Written write() const override {
    Written out{.files = {{"bags.csv", data::bags_csv(bags_)}}, .data = "bags.csv"};
    if (run_options_.options.text("question") != "far") return out;
    out.truth = "truth.jsonl, the items that are far out";
    std::string& truth = out.files["truth.jsonl"];
    for (size_t bag = 0; bag < bags_.size(); ++bag) {
      Json items = Json::array();
      for (size_t i = 0; i < bags_.features[bag].size(); i += 2)
        if (bags_.features[bag][i] > kNear) items.push_back(i / 2);
      truth += Json{{"bag", bags_.names[bag]}, {"items", items}}.dump() + "\n";
    }
    return out;
  }

  // The weights of this run's pooling, beside equal ones and those of attention, for the given bags
  // or the first ones of the test split.
  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    if (!input) {
      if (splits_.test.empty()) return {};
      const size_t at = surest();
      const double p =
          model_->forward(packed(bags_.features[at])).softmax(1)[0][labels_[at]].item<double>();
      return {picture(*model_, shown(bags_.features[at],
                                     fmt::format("{}: {}, ", p > 0.5 ? "right" : "wrong; right",
                                                 in_words(labels_[at]))))};
    }
    const data::Bags bags = bags_in(*input);
    for (size_t i = 0; i < bags.size() && i < kShownBags; ++i) {
      out.push_back(picture(*model_, shown(bags.features[i], "")));
      out.back().title += fmt::format(": {}", bags.names[i]);
    }
    return out;
  }

 private:
  static constexpr size_t kShownBags = 8;

  // "label 1 (more than seven points)"; of a user's bags nobody knows what a label means.
  std::string in_words(int64_t label) const {
    const std::string number = fmt::format("label {}", label);
    if (!generated_) return number;
    return fmt::format("{} ({})", number,
                       answer_in_words(run_options_.options.text("question"), label));
  }

  // Of the first test bags the one that is told best.
  size_t surest() {
    constexpr size_t kCompared = 50;
    size_t best = static_cast<size_t>(splits_.test.front());
    double most = -1;
    for (size_t i = 0; i < splits_.test.size() && i < kCompared; ++i) {
      const auto at = static_cast<size_t>(splits_.test[i]);
      const double p =
          model_->forward(packed(bags_.features[at])).softmax(1)[0][labels_[at]].item<double>();
      if (p > most) {
        most = p;
        best = at;
      }
    }
    return best;
  }

  data::Bags bags_in(Input& input) const {
    data::Bags bags =
        data::parse_unlabelled_bags(data::read_stream(input.stream, input.name), input.name);
    data::arrange(bags, {.width = inputs_, .names = columns_}, input.name);
    data::apply(scaling_, bags);
    return bags;
  }

  Shown shown(const std::vector<float>& bag, const std::string& label) const {
    Shown out{.bag = packed(bag), .label = label};
    if (!generated_ && static_cast<int64_t>(columns_.size()) == inputs_)
      out.items = data::telling_numbers(bag, {.width = inputs_, .names = columns_}, scaling_);
    return out;
  }

  data::Packed packed(const std::vector<float>& features) const {
    const int64_t item = 0;
    return data::pack_features({features}, inputs_, std::span(&item, 1)).to(run_options_.device);
  }

  data::Bags bags_;
  data::Scaling scaling_;
  bool generated_ = true;
  int64_t inputs_ = 0;
  std::vector<std::string> columns_;  // of the table learnt from; none: generated
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_pooling(const RunOptions& run_options) {
  return std::make_unique<Pooling>(run_options);
}

}  // namespace fovea::systems::pooling
