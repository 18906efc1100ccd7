// Pooling: attention that does not look. sum φ(x_i), sum/n, max per coordinate, and a learned query
// beside them.
//
// All four are one call: a constant score left as it is sums, made uniform it averages; the largest
// of a coordinate is the hard choice over that coordinate's own values, one head for each. Sum
// grows with n; mean forgets n; max sees the extremes only.
#include <fmt/format.h>
#include <torch/torch.h>

#include "data/bags.h"
#include "data/file.h"
#include "data/packed.h"
#include "data/random.h"
#include "fovea/attend.h"
#include "systems/pooling/pooling.h"
#include "systems/system.h"
#include "train/classification_task.h"

namespace fovea::systems::pooling {

torch::Tensor pool(const std::string& how, const torch::Tensor& values,
                   const torch::Tensor& offsets, const torch::Tensor& query) {
  const int64_t bags = offsets.size(0) - 1, width = values.size(1);
  const Ragged bag{data::one_each(bags, values.device()), offsets};
  if (how == "max") {
    // [total, width heads, 1]: a head for each coordinate, whose key and value are that coordinate.
    const torch::Tensor coordinates = values.unsqueeze(2);
    const torch::Tensor one = torch::ones({bags, width, 1}, values.options());
    return attend(one, coordinates, coordinates,
                  {.score = Dot{1.0}, .normaliser = Hard{}, .structure = bag})
        .squeeze(2);
  }
  const torch::Tensor value = values.unsqueeze(1);  // [total, 1 head, width]
  if (how == "attention")
    return attend(query.reshape({1, 1, width}).expand({bags, 1, width}), value, value,
                  {.structure = bag})
        .squeeze(1);
  const torch::Tensor blank = torch::zeros({bags, 1, width}, values.options());
  Normaliser normaliser = Unnormalised{};
  if (how == "mean") normaliser = Uniform{};
  return attend(blank, value, value,
                {.score = Constant{}, .normaliser = normaliser, .structure = bag})
      .squeeze(1);
}

torch::Tensor pool_weights(const std::string& how, const torch::Tensor& values,
                           const torch::Tensor& query) {
  const int64_t items = values.size(0), width = values.size(1);
  const torch::Tensor offsets = torch::tensor({int64_t{0}, items}, torch::kInt32);
  // What each item adds to the output is its weight: a pooled identity matrix shows it, whatever
  // the pooling.
  if (how == "max") {
    if (items == 0) return torch::zeros({0});
    return torch::one_hot(values.argmax(0), items).to(torch::kFloat32).sum(0) /
           static_cast<double>(width);
  }
  const Ragged bag{data::one_each(1), offsets};
  const torch::Tensor value = values.unsqueeze(1);
  if (how == "attention")
    return weights(query.reshape({1, 1, width}), value, {.structure = bag}).weights.flatten();
  Normaliser normaliser = Unnormalised{};
  if (how == "mean") normaliser = Uniform{};
  return weights(torch::zeros({1, 1, width}), value,
                 {.score = Constant{}, .normaliser = normaliser, .structure = bag})
      .weights.flatten();
}

namespace {

struct Model : torch::nn::Module {
  Model(int64_t inputs, int64_t width, std::string pooling) : how(std::move(pooling)) {
    phi1 = register_module("phi1", torch::nn::Linear(inputs, width));
    phi2 = register_module("phi2", torch::nn::Linear(width, width));
    rho = register_module("rho", torch::nn::Linear(width, 2));
    if (how == "attention") query = register_parameter("query", torch::randn({width}) * 0.1);
  }
  torch::Tensor phi(const torch::Tensor& x) {
    return torch::relu(phi2(torch::relu(phi1(x))));
  }  // [total, width]
  torch::Tensor forward(const data::Packed& bag) {
    return rho(pool(how, phi(bag.values), bag.offsets, query));
  }

  const std::string how;
  torch::nn::Linear phi1{nullptr}, phi2{nullptr}, rho{nullptr};
  torch::Tensor query;
};

// A bag of points in the plane and a question that one kind of pooling can answer: are there many
// (sum), do they lie to the right on the whole (mean), is any of them far out (max)?
class Pooling : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    splits_ = {};
    lengths_.clear();
    if (source.path.empty())
      generate(source.seed);
    else
      bags_ = data::read_bags(source.path);
    if (!scaling_.mean.empty()) {
      data::arrange(bags_, {.width = inputs_, .names = columns_}, source.path);
      data::apply(scaling_, bags_);
    }
    labels_ = bags_.labels;
    for (size_t i = 0; i < bags_.size(); ++i) {
      if (labels_[i] != 0 && labels_[i] != 1)
        throw data::FileError(
            source.path, 0,
            fmt::format("bag '{}' has label {}, expected 0 or 1", bags_.names[i], labels_[i]));
      lengths_.push_back(static_cast<int64_t>(bags_.features[i].size()) / bags_.width);
    }
    generated_ = source.path.empty();
    const auto count = static_cast<int64_t>(bags_.size());
    if (source.all_test) {
      splits_ = data::all_for_test(bags_.size());
    } else {
      splits_ = data::split(count, {.validation = 0.1,
                                    .test = 0.2,
                                    .fold = source.fold,
                                    .folds = source.folds,
                                    .seed = source.seed,
                                    .classes = labels_});
    }
  }

  void prepare() override {
    inputs_ = bags_.width;
    columns_ = bags_.columns;
    // Generated points are as they should be; whatever the run meets later is then left alone too.
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
    inputs_ = assets.facts.at("inputs");
    columns_ = assets.facts.value("columns", std::vector<std::string>{});  // older runs: none
    scaling_ = {assets.facts.at("mean").get<std::vector<float>>(),
                assets.facts.at("deviation").get<std::vector<float>>()};
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<Model>(inputs_, setting_.options.integer("width"),
                                            setting_.options.text("pool"));
  }
  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(
        data::pack_features(bags_.features, bags_.width, items).to(setting_.device));
  }

  // A CSV of bags; the label column may be there and is not read.
  void predict(Input input, std::ostream& out) override {
    const data::Bags bags = bags_in(input);
    for (size_t i = 0; i < bags.size(); ++i) {
      const int64_t item = static_cast<int64_t>(i);
      const double p =
          model_
              ->forward(data::pack_features(bags.features, bags.width, std::span(&item, 1))
                            .to(setting_.device))
              .softmax(1)[0][1]
              .item<double>();
      out << fmt::format("{}\t{}\t{:.4f}\n", bags.names[i], p > 0.5 ? 1 : 0, p);
    }
  }

  Written write() const override {
    Written out{.files = {{"bags.csv", data::bags_csv(bags_)}}, .data = "bags.csv"};
    if (setting_.options.text("question") != "far") return out;
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

  // The weights of this run's pooling, beside even ones and attention's: the bags given, or the
  // first of the test split.
  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<explain::Explanation> out;
    if (!input) {
      if (splits_.test.empty()) return {};
      const auto at = static_cast<size_t>(splits_.test[0]);
      return {picture(bags_.features[at], fmt::format("label {}, ", labels_[at]))};
    }
    const data::Bags bags = bags_in(*input);
    for (size_t i = 0; i < bags.size() && i < kShownBags; ++i) {
      out.push_back(picture(bags.features[i], ""));
      out.back().title += fmt::format(": {}", bags.names[i]);
    }
    return out;
  }

 private:
  static constexpr size_t kShownBags = 8;
  static constexpr float kNear = 2;  // question "far": what is beyond is far out

  data::Bags bags_in(Input& input) const {
    data::Bags bags =
        data::parse_unlabelled_bags({std::istreambuf_iterator<char>(input.stream), {}}, input.name);
    data::arrange(bags, {.width = inputs_, .names = columns_}, input.name);
    data::apply(scaling_, bags);
    return bags;
  }

  explain::Explanation picture(const std::vector<float>& features, const std::string& label) const {
    explain::Explanation out;
    out.title = fmt::format("What {} pooling takes from a bag", model_->how);
    out.view = explain::View::kBag;
    out.score = model_->how == "attention" ? "scaled dot with a learned query"
                : model_->how == "max"     ? "the coordinate itself"
                                           : "constant";
    out.normaliser = model_->how == "sum"    ? "none"
                     : model_->how == "mean" ? "uniform"
                     : model_->how == "max"  ? "hard, one head a coordinate"
                                             : "softmax";
    out.structure = "bag";
    out.scale =
        model_->how == "attention" ? fmt::format("1/√{}", setting_.options.integer("width")) : "1";
    out.query_label = "pooling";
    out.key_label = "item of the bag";
    out.heads = {"weights", {"this run: " + model_->how, "even (uniform)", "attention (softmax)"}};
    const int64_t item = 0;
    const data::Packed bag =
        data::pack_features({features}, inputs_, std::span(&item, 1)).to(setting_.device);
    const torch::Tensor phi = model_->phi(bag.values).cpu();
    out.queries.emplace_back().text = fmt::format("bag of {}", phi.size(0));
    for (int64_t i = 0; i < phi.size(0); ++i) {
      std::string text = fmt::format("{:.2f}", bag.values[i][0].item<double>());
      if (inputs_ > 1)
        text +=
            fmt::format(", {:.2f}{}", bag.values[i][1].item<double>(), inputs_ > 2 ? ", …" : "");
      out.keys.emplace_back().text = text;
    }
    out.maps.emplace_back().dense = to_floats(pool_weights(
        model_->how, phi, model_->query.defined() ? model_->query.cpu() : model_->query));
    const auto beside = [&](int head, const char* how, const torch::Tensor& query) {
      auto& map = out.maps.emplace_back();
      map.head = head;
      map.dense = to_floats(pool_weights(how, phi, query));
    };
    beside(1, "mean", {});
    // A run without a query of its own is asked with the direction in which label 1 lies.
    const torch::Tensor direction = (model_->rho->weight[1] - model_->rho->weight[0]).cpu();
    beside(2, "attention", model_->query.defined() ? model_->query.cpu() : direction);
    if (!model_->query.defined())
      out.notes.push_back(
          "Beside it, attention to the same items: the query is the direction in which the "
          "classifier finds label 1, so the weights show which items speak for it.");
    const double p = model_->forward(bag).softmax(1)[0][1].item<double>();
    out.outcome = fmt::format("{}p(1) = {:.3f}", label, p);
    if (model_->how == "max")
      out.notes.push_back(
          "A weight is the share of coordinates whose largest value is this item's.");
    return out;
  }

  void generate(uint64_t seed) {
    const std::string& question = setting_.options.text("question");
    data::Random random(seed);
    bags_ = {};
    bags_.width = 2;
    for (int64_t bag = 0; bag < setting_.options.integer("bags"); ++bag) {
      const bool yes = bag % 2;  // balanced by construction
      const int64_t size = question == "many"
                               ? static_cast<int64_t>(yes ? 8 + random.below(7) : random.below(7))
                               : static_cast<int64_t>(1 + random.below(14));
      std::vector<float> points;
      for (int64_t i = 0; i < 2 * size; ++i) points.push_back(static_cast<float>(random.normal()));
      if (question == "right") {
        float mean = 0;
        for (size_t i = 0; i < points.size(); i += 2) mean += points[i] / static_cast<float>(size);
        for (size_t i = 0; i < points.size(); i += 2) points[i] += (yes ? 0.15f : -0.15f) - mean;
      }
      if (question == "far") {
        for (float& value : points) value = std::min(value, kNear);
        if (yes)
          points[2 * random.below(static_cast<uint64_t>(size))] =
              static_cast<float>(3 + random.uniform());
      }
      bags_.names.push_back(std::to_string(bag));
      bags_.labels.push_back(yes);
      bags_.features.push_back(std::move(points));
    }
  }

  data::Bags bags_;
  data::Scaling scaling_;
  bool generated_ = true;
  int64_t inputs_ = 0;
  std::vector<std::string> columns_;  // of the table learnt from; none: generated
  std::shared_ptr<Model> model_;
};

const Registration registered{{
    .info =
        {.name = "pooling",
         .number = 2,
         .title = "Sum, mean and max pooling",
         .idea = "The oldest way to turn a bag of things into one vector: add them, average "
                 "them, or take the largest of each coordinate. "
                 "It is attention with the looking left out: every item gets the same weight, "
                 "or the winner gets all.\n\nSum grows with the "
                 "number of items and can count them; mean forgets the number; max sees only "
                 "the extremes. An empty bag gives zero, never 0/0.",
         .paper = "classical",
         .equation =
             "<math "
             "display=\"block\"><mi>o</mi><mo>=</mo><munder><mo>∑</mo><mi>i</mi></"
             "munder><mi>φ</mi><mo>(</mo><msub><mi>x</mi><mi>i</mi></msub><mo>)</mo>"
             "<mo>,</mo><mspace "
             "width=\"1em\"/><mfrac><mn>1</mn><mi>n</mi></mfrac><munder><mo>∑</mo><mi>i</mi></"
             "munder><mi>φ</mi><mo>(</mo><msub><mi>x</mi><mi>i</mi></msub><mo>)</mo>"
             "<mo>,</mo><mspace "
             "width=\"1em\"/><munder><mi>max</mi><mi>i</mi></munder><mi>φ</mi><mo>(</"
             "mo><msub><mi>x</mi><mi>i</mi></msub><mo>)</mo></math>",
         .equation_text = "o = sum_i φ(x_i);  sum_i φ(x_i) / n;  max_i φ(x_i) for each coordinate",
         .code =
             "auto sum  = fovea::attend(blank, x, x,\n"
             "                          {.score = fovea::Constant{},\n"
             "                           .normaliser = fovea::Unnormalised{}, .structure = bag});\n"
             "auto mean = fovea::attend(blank, x, x,\n"
             "                          {.score = fovea::Constant{},\n"
             "                           .normaliser = fovea::Uniform{}, .structure = bag});\n"
             "auto max  = fovea::attend(one, x_c, x_c,\n"
             "                          {.score = fovea::Dot{1.0},\n"
             "                           .normaliser = fovea::Hard{}, .structure = bag});",
         .triple = {.query = "none",
                    .key = "none",
                    .value = "φ(x)",
                    .score = "constant",
                    .normaliser = "none, uniform or argmax",
                    .structure = "all"},
         .formats = {"generated: bags of points and a question (question=many, right or far)",
                     "CSV bag,label,f0,f1,… with labels 0 and 1"},
         .expect = "the pooling that fits the question ≥ 99 %: sum for many, mean for right, "
                   "max for far"},
    .options =
        {Option("pool", "sum", "how a bag becomes one vector")
             .among({"sum", "mean", "max", "attention"}),
         Option("question", "many",
                "generated bags: are there many points, do they lie to the right, is one far out?")
             .among({"many", "right", "far"}),
         Option("bags", 3000, "generated bags").between(20, 1000000),
         Option("width", 16, "of φ").between(1, 1024)},
    .recipe =
        train::Recipe{
            .epochs = 30, .batch = 64, .optimiser = "adam", .rate = 0.01, .monitor = "loss"},
    .tour = {"epochs=15"},
    .make = [](const Setting& setting) -> std::unique_ptr<Task> {
      return std::make_unique<Pooling>(setting);
    },
}};

}  // namespace
}  // namespace fovea::systems::pooling
