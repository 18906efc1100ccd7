// Clouds of points on eight solids: which one is it?
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <optional>
#include <span>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/bags.h"
#include "data/generated/solids.h"
#include "data/random.h"
#include "systems/deep_sets/model.h"
#include "systems/deep_sets/tasks.h"
#include "systems/deep_sets/view.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::deep_sets {
namespace {

const data::Features kSpace{.width = 3, .names = {"x", "y", "z"}};

class Solids : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    splits_ = {};
    clouds_.clear();
    labels_.clear();
    names_.clear();
    if (source.path.empty())
      generate(source.seed);
    else
      read_table(source);
  }
  std::string read_in_words() const override {
    return fmt::format("{} clouds of {} kinds", clouds_.size(), names_.size());
  }
  Written write() const override {
    data::Bags bags{.width = 3, .columns = {}, .names = {}, .labels = labels_, .features = clouds_};
    for (size_t i = 0; i < clouds_.size(); ++i) bags.names.push_back(std::to_string(i));
    std::string text = data::bags_csv(bags);  // which names features f0, f1, …
    text.replace(0, text.find('\n'), fmt::format("bag,label,{}", fmt::join(found_.names, ",")));
    return {.files = {{"clouds.csv", text}}, .data = "clouds.csv"};
  }
  void prepare() override {
    known_ = names_;
    columns_ = found_;
  }
  Assets assets() const override {
    return {.facts = {{"classes", known_}, {"columns", columns_.names}}, .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    known_ = facts.texts("classes");
    columns_.names.clear();
    if (facts.has("columns"))  // older runs: none
      columns_.names = data::kept_features(columns_.width, facts.texts("columns")).names;
  }
  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& options = run_options_.options;
    return model_ = std::make_shared<CloudClassifier>(
               options.integer("cloud_width"), static_cast<int64_t>(known_.size()),
               options.text("pool"), options.number("dropout"));
  }
  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(data::pack_features(clouds_, 3, items).to(run_options_.device));
  }

  // CSV bag,x,y,z: a cloud each bag.
  void predict(Input input, std::ostream& out) override {
    const data::Bags bags = bags_of(input);
    for (size_t i = 0; i < bags.size(); ++i) {
      const auto item = static_cast<int64_t>(i);
      const torch::Tensor p =
          model_
              ->forward(data::pack_features(bags.features, 3, std::span(&item, 1))
                            .to(run_options_.device))
              .softmax(1)[0];
      write_answer(out, i + 1,
                   {fmt::format("{}\t{}\t{:.4f}\n", bags.names[i],
                                known_[static_cast<size_t>(p.argmax().item<int64_t>())],
                                p.max().item<double>()),
                    [&] {
                      Json fields = {{"set", bags.names[i]}};
                      fields.update(class_fields(known_, to_floats(p)));
                      return fields;
                    }});
    }
  }

  // One test cloud of each kind, or the input's clouds as `predict` takes them: which points the
  // maximum took, and how often.
  std::vector<explain::Explanation> explain(Input* input) override {
    const std::vector<ShownCloud> clouds = input ? clouds_of(*input) : one_of_each_kind();
    if (clouds.empty()) return {};
    return points_that_decide(clouds, *model_, known_);
  }

 private:
  std::vector<ShownCloud> one_of_each_kind() const {
    std::vector<bool> seen(known_.size());
    std::vector<ShownCloud> out;
    for (const int64_t item : splits_.test) {
      const auto label = static_cast<size_t>(labels_[static_cast<size_t>(item)]);
      if (seen[label]) continue;
      seen[label] = true;
      out.push_back({known_[label], label,
                     data::pack_features(clouds_, 3, std::span(&item, 1)).to(run_options_.device)});
    }
    return out;
  }
  // CSV bag,x,y,z.
  std::vector<ShownCloud> clouds_of(Input& input) const {
    const data::Bags bags = bags_of(input);
    std::vector<ShownCloud> out;
    for (size_t i = 0; i < bags.size(); ++i) {
      const auto item = static_cast<int64_t>(i);
      out.push_back(
          {bags.names[i], std::nullopt,
           data::pack_features(bags.features, 3, std::span(&item, 1)).to(run_options_.device)});
    }
    return out;
  }
  data::Bags bags_of(Input& input) const {
    data::Bags bags =
        data::parse_unlabelled_bags(data::read_stream(input.stream, input.name), input.name);
    data::arrange(bags, columns_, input.name);
    for (auto& cloud : bags.features) data::standardise_cloud(cloud);
    return bags;
  }

  void generate(uint64_t seed) {
    found_ = kSpace;
    for (int64_t i = 0; i < data::kSolids; ++i) names_.push_back(data::solid_name(i));
    const int64_t points = run_options_.options.integer("points");
    splits_ = data::in_order(data::kGenerated);
    for (int64_t i = 0; i < data::kGenerated.all(); ++i) {
      labels_.push_back(i % data::kSolids);
      clouds_.push_back(data::solid_cloud(labels_.back(), points,
                                          data::mix(seed, 3000 + static_cast<uint64_t>(i))));
    }
  }

  // CSV bag,label,x,y,z: a cloud each bag; labels are numbers.
  void read_table(const Source& source) {
    data::Bags bags = data::read_bags(source.path);
    if (bags.width != 3)
      throw data::FileError(source.path, 1,
                            data::count_of(bags.width, "feature", ", expected x, y, z"));
    if (model_) {
      data::arrange(bags, columns_, source.path);
      refuse_unknown_labels(bags, source.path);
    }
    found_ = {.width = 3, .names = bags.columns};
    const int64_t most = *std::max_element(bags.labels.begin(), bags.labels.end());
    if (*std::min_element(bags.labels.begin(), bags.labels.end()) < 0 || most > 10000)
      throw data::FileError(source.path, 0, "labels: expected 0 to 10000");
    for (int64_t i = 0; i <= most; ++i) names_.push_back(std::to_string(i));
    labels_ = bags.labels;
    clouds_ = std::move(bags.features);
    for (auto& cloud : clouds_) data::standardise_cloud(cloud);
    data::SplitRequest request = split_request(source);
    request.test = 0.2;
    request.keys = data::keys_of(bags);
    request.classes = labels_;
    splits_ = data::split(static_cast<int64_t>(clouds_.size()), request);
  }

  void refuse_unknown_labels(const data::Bags& bags, const std::string& path) const {
    for (size_t i = 0; i < bags.size(); ++i)
      if (bags.labels[i] < 0 || bags.labels[i] >= static_cast<int64_t>(known_.size()))
        throw data::FileError(
            path, 0,
            fmt::format("label {} of bag {}, expected 0 to {} as in training", bags.labels[i],
                        data::shown(bags.names[i]), known_.size() - 1));
  }

  std::vector<std::vector<float>> clouds_;
  std::vector<std::string> names_, known_;
  data::Features found_ = kSpace, columns_ = kSpace;  // of the table read; of training's
  std::shared_ptr<CloudClassifier> model_;
};

}  // namespace

std::unique_ptr<Task> make_solids(const RunOptions& run_options) {
  return std::make_unique<Solids>(run_options);
}

}  // namespace fovea::systems::deep_sets
