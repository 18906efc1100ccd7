#include "systems/mil/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/bags.h"
#include "data/pictures/idx.h"
#include "data/pictures/image.h"
#include "systems/mil/bags.h"
#include "systems/mil/model.h"
#include "systems/mil/view.h"
#include "systems/normaliser_option.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::mil {
namespace {

class MultipleInstance : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    set_ = read_bag_set(source, run_options_.options);
    seed_ = source.seed;
    splits_ = set_.splits;
    labels_ = set_.bags.labels;
    lengths_.clear();
    for (const auto& features : set_.bags.features)
      lengths_.push_back(static_cast<int64_t>(features.size()) / set_.bags.width);
    if (model_) {
      data::arrange(set_.bags, columns_, source.path);
      if (side_ == 0) data::apply(scaling_, set_.bags);
    }
  }
  std::string read_in_words() const override {
    if (set_.side == 0) return data::in_words(set_.bags);
    const int64_t positive = std::count(labels_.begin(), labels_.end(), 1);
    return fmt::format("{} bags of {} instances, {} pixels wide; label 1: {}, label 0: {}",
                       labels_.size(),
                       std::accumulate(lengths_.begin(), lengths_.end(), int64_t{0}), set_.side,
                       positive, static_cast<int64_t>(labels_.size()) - positive);
  }
  void prepare() override {
    columns_ = {.width = set_.bags.width, .names = set_.bags.columns};
    side_ = set_.side;
    if (side_ == 0) {
      scaling_ = data::scaling_of(set_.bags, splits_.train);
      data::apply(scaling_, set_.bags);
    }
  }
  Assets assets() const override {
    return {.facts = {{"inputs", columns_.width},
                      {"columns", columns_.names},
                      {"side", side_},
                      {"mean", scaling_.mean},
                      {"deviation", scaling_.deviation}},
            .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    columns_ = data::kept_features(
        facts.integer("inputs", 1, data::kMostFeatures),
        facts.has("columns") ? facts.texts("columns") : std::vector<std::string>{});  // older: none
    side_ = facts.integer("side", 0, data::kWidestPicture);
    scaling_ = data::kept_scaling(facts.numbers("mean"), facts.numbers("deviation"),
                                  side_ == 0 ? columns_.width : 0);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& options = run_options_.options;
    Shape shape{.side = side_,
                .inputs = columns_.width,
                .filters = options.integer("filters"),
                .hidden = options.integer("hidden"),
                .attention = options.integer("attention"),
                .dropout = options.number("dropout"),
                .pool = options.text("pool")};
    shape.normaliser = normaliser_named(options.text("normaliser"));
    shape.context = options.text("query") == "context";
    return model_ = std::make_shared<Model>(shape);
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(packed(items));
  }

  // Positive bags: whether the largest weight is on a key instance.
  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    if (set_.key_instances.empty()) return out;
    const torch::Tensor of_instances = model_->weights_of(packed(items));
    count_zeros(of_instances);
    const std::vector<float> weights = to_floats(of_instances);
    size_t at = 0;
    for (const int64_t item : items) {
      const auto& keys = set_.key_instances[static_cast<size_t>(item)];
      size_t best = 0;
      for (size_t k = 1; k < keys.size(); ++k)
        if (weights[at + k] > weights[at + best]) best = k;
      out.push_back(labels_[static_cast<size_t>(item)] == 1 ? keys[best] : -1);
      at += keys.size();
    }
    return out;
  }

  Written write() const override { return write_digits(set_, seed_); }

  // Numbers: a CSV bag,f0,f1,… Pictures: a line is a folder of PNG or JPEG files, which is a bag.
  void predict(Input input, std::ostream& out) override {
    if (side_ == 0) {
      size_t number = 0;
      for (const ShownBag& bag : table(input)) write_answer(out, ++number, answer(bag));
      return;
    }
    answer_lines(input, out, [&](size_t number, std::string_view line) {
      return answer(folder(input, number, line));
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<ShownBag> shown;
    if (input) {
      if (side_ == 0)
        shown = table(*input);
      else
        data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
          shown.push_back(folder(*input, number, line));
        });
    } else {
      int64_t wanted[2] = {2, 3};  // negative, positive
      for (const int64_t item : splits_.test) {
        const auto at = static_cast<size_t>(item);
        if (set_.bags.features[at].empty() || wanted[labels_[at]]-- <= 0) continue;
        ShownBag& bag = shown.emplace_back();
        bag.name = "bag " + set_.bags.names[at];
        bag.label = labels_[at];
        bag.features = set_.bags.features[at];
        if (!set_.key_instances.empty()) bag.key_instances = set_.key_instances[at];
      }
      std::stable_sort(  // what is to be found is in the positive ones
          shown.begin(), shown.end(),
          [](const ShownBag& a, const ShownBag& b) { return a.label > b.label; });
    }
    if (shown.empty()) return {};
    if (side_ == 0 && static_cast<int64_t>(columns_.names.size()) == columns_.width)
      for (ShownBag& bag : shown)
        bag.telling = data::telling_numbers(bag.features, columns_, scaling_);
    return pictures(*model_, shown, columns_.width, side_, run_options_.options.text("pool"),
                    run_options_.device);
  }

 private:
  data::Packed packed(std::span<const int64_t> items) const {
    return data::pack_features(set_.bags.features, set_.bags.width, items).to(run_options_.device);
  }

  std::vector<ShownBag> table(Input& input) const {
    data::Bags bags =
        data::parse_unlabelled_bags(data::read_stream(input.stream, input.name), input.name);
    data::arrange(bags, columns_, input.name);
    data::apply(scaling_, bags);
    std::vector<ShownBag> out;
    for (size_t i = 0; i < bags.size(); ++i)
      out.push_back({.name = bags.names[i], .features = std::move(bags.features[i])});
    return out;
  }

  ShownBag folder(const Input& input, size_t number, std::string_view line) const {
    const std::string path = data::folder_named(input.name, number, line);
    return {.name = path, .features = picture_bag(path, side_), .files = data::image_files(path)};
  }

  // Name, class, its probability, the instance with the largest weight.
  Answered answer(const ShownBag& bag) const {
    const std::vector<std::vector<float>> one{bag.features};
    const data::Packed packed =
        data::pack_features(one, columns_.width, std::vector<int64_t>{0}).to(run_options_.device);
    const torch::Tensor both = model_->forward(packed).softmax(1)[0];
    const double p = both[1].item<double>();
    const torch::Tensor weights = model_->weights_of(packed);
    std::string heaviest = "no instance";
    if (weights.numel() > 0) {
      const auto at = static_cast<size_t>(weights.argmax().item<int64_t>());
      heaviest = fmt::format("instance {} of {}{}, weight {:.3f}", at + 1, weights.numel(),
                             bag.files.empty() ? "" : " (" + bag.instance_name(at) + ")",
                             weights.max().item<double>());
    }
    return {fmt::format("{}\t{}\t{:.4f}\t{}\n", bag.name, p > 0.5 ? 1 : 0, std::max(p, 1 - p),
                        heaviest),
            [both, weights, name = bag.name] {
              Json fields = {{"bag", name}};
              fields.update(class_fields({"0", "1"}, to_floats(both)));
              fields["weights"] = to_floats(weights.flatten());
              return fields;
            }};
  }

  BagSet set_;
  uint64_t seed_ = 1;  // of the data
  data::Scaling scaling_;
  data::Features columns_;
  int64_t side_ = 0;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_multiple_instance(const RunOptions& run_options) {
  return std::make_unique<MultipleInstance>(run_options);
}

}  // namespace fovea::systems::mil
