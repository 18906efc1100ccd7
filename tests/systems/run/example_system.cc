// "marked-item": a bag of items, one of them marked; which class is it? A learned query looks for
// the mark.
#include <fmt/format.h>
#include <torch/torch.h>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/packed.h"
#include "data/random.h"
#include "fovea/attend.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/classification_task.h"

namespace fovea::systems::marked_item {
namespace {

// ---- the model: short enough to read beside its paper -------------------------------------------

struct Model : torch::nn::Module {
  explicit Model(int64_t classes) {
    query = register_parameter("query", torch::randn({1, 1, 8}) * 0.1);
    lin = register_module("lin", torch::nn::Linear(classes + 1, 8));
    out = register_module("out", torch::nn::Linear(classes + 1, classes));
  }

  // score θ·(W x_i), softmax over the bag, weighted sum of the items themselves.
  Choices choices(const data::Packed& bag) const {
    return {.score = Dot{},
            .normaliser = Softmax{},
            .structure = Ragged{data::one_each(bag.items(), query.device()), bag.offsets}};
  }
  torch::Tensor queries(const data::Packed& bag) const { return query.expand({bag.items(), 1, 8}); }
  torch::Tensor keys(const data::Packed& bag) { return lin(bag.values).unsqueeze(1); }

  torch::Tensor forward(const data::Packed& bag) {  // [bags, classes]
    const auto mixed =
        attend(queries(bag), keys(bag), bag.values.unsqueeze(1), choices(bag));  // [bags, 1, width]
    return out(mixed.squeeze(1));
  }

  torch::Tensor query;
  torch::nn::Linear lin{nullptr}, out{nullptr};
};

// ---- the task: data → batches → loss → metric ---------------------------------------------------

class MarkedItem : public ClassificationTask {
 public:
  explicit MarkedItem(const RunOptions& run_options)
      : ClassificationTask(run_options), kinds_(run_options.options.integer("classes")) {}

  void read(const Source& source) override {
    if (!source.path.empty())
      throw data::FileError(source.path, 0, "marked-item has generated data only");
    data::Random random(source.seed);
    for (int64_t bag = 0; bag < 1200; ++bag) {
      const auto size = static_cast<int64_t>(2 + random.below(9));
      marked_.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(size))));
      lengths_.push_back(size);
      bags_.emplace_back();
      for (int64_t i = 0; i < size; ++i) {
        const auto kind = static_cast<int64_t>(random.below(static_cast<uint64_t>(kinds_)));
        add_item(bags_.back(), kind, i == marked_.back());
        if (i == marked_.back()) labels_.push_back(kind);
      }
    }
    splits_ = data::split(1200, {.test = 0.2,
                                 .fold = source.fold,
                                 .folds = source.folds,
                                 .seed = source.seed,
                                 .classes = labels_});
  }

  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(kinds_);
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(packed(items));
  }

  // Only the largest weight of each row is asked for, and no more is held.
  std::vector<int> hits(std::span<const int64_t> items) override {
    const data::Packed bag = packed(items);
    const auto top =
        weights(model_->queries(bag), model_->keys(bag), model_->choices(bag), {.top_k = 1})
            .indices.flatten()
            .cpu();
    std::vector<int> out;
    for (size_t i = 0; i < items.size(); ++i)
      out.push_back(top[static_cast<int64_t>(i)].item<int64_t>() ==
                    marked_[static_cast<size_t>(items[i])]);
    return out;
  }

  // A line is a bag: class numbers, the marked one with a star: "3 1* 2".
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text, std::ostream& to) {
      const torch::Tensor p = model_->forward(parsed(text, input.name, line)).softmax(-1)[0];
      to << fmt::format("{}\t{:.4f}\n", p.argmax().item<int64_t>(), p.max().item<double>());
    });
  }

  // ---- the view: what its picture shows --------------------------------------------------------

  std::vector<explain::Explanation> explain(Input* input) override {
    std::string line = "3 1* 2 0";
    if (input) std::getline(input->stream, line);
    const data::Packed bag = parsed(line, input ? input->name : "example", 1);
    explain::Explanation out;
    out.title = "Which item is looked at";
    out.view = explain::View::kBag;
    out.score = "scaled dot with a learned query";
    out.normaliser = "softmax";
    out.structure = "bag";
    out.scale = "1/√8";
    out.queries.emplace_back().text = "θ";
    for (const std::string& word : data::words(line)) out.keys.emplace_back().text = word;
    out.maps.emplace_back().dense =
        to_floats(weights(model_->queries(bag), model_->keys(bag), model_->choices(bag)).weights);
    return {out};
  }

 private:
  void add_item(std::vector<float>& bag, int64_t kind, bool marked) const {
    for (int64_t c = 0; c < kinds_; ++c) bag.push_back(c == kind ? 1.0f : 0.0f);
    bag.push_back(marked ? 1.0f : 0.0f);
  }
  data::Packed packed(std::span<const int64_t> items) const {
    return data::pack_features(bags_, kinds_ + 1, items).to(run_options_.device);
  }
  data::Packed parsed(std::string_view line, const std::string& name, size_t number) const {
    std::vector<std::vector<float>> bag(1);
    for (std::string word : data::words(line)) {
      const bool marked = word.ends_with('*');
      if (marked) word.pop_back();
      const int64_t label = data::parse_integer(word, "class", name, number);
      if (label < 0 || label >= kinds_)
        throw data::FileError(name, number,
                              fmt::format("class {}, expected 0 to {}", label, kinds_ - 1));
      add_item(bag[0], label, marked);
    }
    return data::pack_features(bag, kinds_ + 1, std::vector<int64_t>{0}).to(run_options_.device);
  }

  const int64_t kinds_;
  std::vector<std::vector<float>> bags_;
  std::vector<int64_t> marked_;
  std::shared_ptr<Model> model_;
};

// ---- the registration ---------------------------------------------------------------------------

const Registration registered{{
    .info =
        {.name = "marked-item",
         .number = 99,
         .title = "The marked item",
         .idea = "A learned query finds the one item of a bag that carries a mark.",
         .paper = "an example",
         .equation =
             R"(o = \sum_i a_i x_i, \quad a_i = \operatorname{softmax}_i(\theta^\top W x_i / \sqrt{8}))",
         .code =
             "attend(query, lin(x), x, {.score = Dot{}, .structure = Ragged{one_each, offsets}})",
         .triple = {.query = "learned θ",
                    .key = "W x_i",
                    .value = "x_i",
                    .score = "scaled dot",
                    .normaliser = "softmax",
                    .structure = "bag"},
         .formats = {"generated"},
         .expect = "accuracy 1.0, hit rate 1.0"},
    .options = {Option("classes", 5, "kinds of items").between(2, 100)},
    .recipe =
        train::Recipe{
            .epochs = 12, .batch = 32, .optimiser = "adam", .rate = 0.03, .monitor = "loss"},
    .tour = {"epochs=4"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<MarkedItem>(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::marked_item
