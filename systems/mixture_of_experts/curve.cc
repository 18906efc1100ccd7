// A number from numbers, by experts each of which may own a piece of the curve; and how much of the
// first half is forgotten when the second is trained after it.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "data/generated/pieces.h"
#include "systems/mixture_of_experts/model.h"
#include "systems/mixture_of_experts/tasks.h"
#include "systems/mixture_of_experts/view.h"
#include "systems/table_task.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/descent/recipe.h"

namespace fovea::systems::mixture_of_experts {
namespace {

class Curve : public TableTask {
 public:
  explicit Curve(const RunOptions& run_options)
      : TableTask(run_options),
        epochs_(train::recipe_of(run_options.options).epochs),
        in_turn_(run_options.options.text("order") == "in_turn") {}

  void read(const Source& source) override {
    piece_.clear();
    for (auto& half : halves_) half.clear();
    TableTask::read(source);
  }
  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<CurveModel>(static_cast<int64_t>(columns_.size()),
                                                 run_options_.options);
  }

  int64_t items(Split split) const override {
    return split == Split::kTrain ? static_cast<int64_t>(turn().size()) : TableTask::items(split);
  }
  void begin_epoch(int64_t epoch, const std::vector<Metrics>&) override { epoch_ = epoch; }

  Loss loss(const Batch& batch) override {
    const std::vector<int64_t> items = at_positions(turn(), batch.items);
    const nn::Mixed mixed = model_->mix(inputs(items));
    const torch::Tensor target = targets(items);  // [items, 1]
    const torch::Tensor squares = (mixed.output - target).square().mean();
    torch::Tensor mean = squares;
    if (run_options_.options.text("loss") == "mixture") {  // −log Σ_i g_i exp(−½ ‖d − E_i‖²)
      const torch::Tensor answers =
          mixed.answers.index_select(0, mixed.answers_of.columns).reshape(mixed.gates.sizes());
      mean =
          -(mixed.gates.clamp_min(1e-12).log() - 0.5 * ((target - answers) / deviation()).square())
               .logsumexp(1)
               .mean();
    }
    mean = mean + run_options_.options.number("balance") * model_->balance(batch.epoch);
    // The squared error is reported, as in validation: the likelihood changes with its deviation.
    return {mean - mean.detach() + squares.detach(), static_cast<int64_t>(items.size())};
  }

  // Halves in turn: all epochs count the same, and the middle one is stored.
  Metrics validate() override {
    if (!in_turn_) return GradientTask::validate();
    if (epoch_ + 1 == first_epochs()) model_->first_error.fill_(first_half_error());
    return {};
  }

  Evaluation evaluate(Split split) override {
    const std::vector<int64_t>& items = splits_.of(split);
    Evaluation out{.items = static_cast<int64_t>(items.size())};
    if (items.empty()) {
      out.notes.push_back("no items to evaluate, so no figures");
      return out;
    }
    const nn::Mixed mixed = model_->mix(inputs(items));
    const double error = (mixed.output - targets(items)).square().mean().item<double>();
    out.metrics = {{"loss", error},
                   {"rmse", std::sqrt(error) * scales_.deviation},
                   {"r2", 1 - error / std::max(1e-12, targets(items).var(0, false).item<double>())},
                   {"load_max_mean", largest_over_mean(mixed.load)},
                   {"overflow", overflow_share(mixed.overflow, mixed.load)}};
    if (in_turn_) {
      const double before = model_->first_error.item<double>(), after = first_half_error();
      out.metrics["first_mse_before"] = before;
      out.metrics["first_mse_after"] = after;
      out.metrics["forgetting_mse"] = after - before;
    }
    if (!piece_.empty()) out.attention["hit_rate"] = owned(items, mixed);
    return out;
  }

  Written write() const override {
    Written out{.data = "curve.csv", .truth = "truth.jsonl, the piece of each row"};
    std::string &table = out.files["curve.csv"], &truth = out.files["truth.jsonl"];
    table = "x,y\n";
    for (size_t i = 0; i < table_.rows(); ++i) {
      table += fmt::format("{},{}\n", table_.x[i], table_.y[i]);
      if (!piece_.empty()) truth += Json{{"row", i}, {"piece", piece_[i]}}.dump() + "\n";
    }
    return out;
  }

  // A CSV of the inputs; the answer to each row: the number, its expert, the expert's gate.
  void predict(Input input, std::ostream& out) override {
    const std::vector<double> x = rows_in(input);
    const nn::Mixed mixed = model_->mix(scaled(x));
    for (int64_t i = 0; i < mixed.gates.size(0); ++i)
      write_answer(
          out, static_cast<size_t>(i) + 1,
          {fmt::format("{:.6g}\texpert {}\t{:.4f}\n",
                       scales_.in_units(mixed.output[i].item<double>()),
                       mixed.chosen[i][0].item<int64_t>() + 1, mixed.gates[i][0].item<double>()),
           [&] {
             Json experts = Json::object();
             for (int64_t k = 0; k < mixed.chosen.size(1); ++k)
               experts[std::to_string(mixed.chosen[i][k].item<int64_t>() + 1)] =
                   mixed.gates[i][k].item<double>();
             return Json{{"answer", scales_.in_units(mixed.output[i].item<double>())},
                         {"experts", experts}};
           }});
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    const int64_t experts = model_->experts->options().experts;
    Routing routing{.loads = model_->loads};
    if (input) {
      constexpr size_t kMostRows = 40;
      std::vector<double> x = rows_in(*input);
      x.resize(std::min(x.size(), kMostRows * columns_.size()));
      routing.gates = dense_gates(model_->mix(scaled(x)), experts);
      for (int64_t i = 0; i < routing.gates.size(0); ++i) {
        routing.kinds.push_back(fmt::format("row {}", i + 1));
        routing.kind_of.push_back(i);
      }
      if (routing.kinds.empty()) return {};
      return {who_does_what(routing, model_->experts->options(), "The experts of each row")};
    }
    const std::vector<int64_t>& items = splits_.test;
    if (items.empty()) return {};
    const torch::Tensor x = inputs(items);
    routing.gates = dense_gates(model_->mix(x), experts);
    const bool pieces = !piece_.empty();
    const int64_t kinds = pieces ? data::kStraightPieces : 10;
    for (int64_t kind = 0; kind < kinds; ++kind)
      routing.kinds.push_back(pieces ? fmt::format("piece {}", kind + 1)
                                     : fmt::format("{}: tenth {}", columns_[0], kind + 1));
    for (size_t i = 0; i < items.size(); ++i) {
      const double place = (x[static_cast<int64_t>(i)][0].item<double>() + 1) / 2;
      routing.kind_of.push_back(pieces
                                    ? piece_[static_cast<size_t>(items[i])]
                                    : std::clamp<int64_t>(static_cast<int64_t>(place * 10), 0, 9));
    }
    explain::Explanation out =
        who_does_what(routing, model_->experts->options(),
                      pieces ? "Which expert owns which piece" : "Which expert is selected where");
    if (columns_.size() == 1)
      out.plots.insert(out.plots.begin(), curve_plot(points(items), experts));
    return {out};
  }

 protected:
  data::Regression generated(int64_t rows, uint64_t seed) override {
    data::StraightPieces pieces = data::generate_straight_pieces(rows, seed);
    piece_ = std::move(pieces.piece);
    return std::move(pieces.table);
  }

 private:
  // The items of this epoch: all, or one half of the first input's range, then the other.
  const std::vector<int64_t>& turn() const {
    if (!in_turn_) return splits_.train;
    if (halves_[0].empty() && halves_[1].empty())
      for (const int64_t item : splits_.train) halves_[in_first_half(item) ? 0 : 1].push_back(item);
    return halves_[epoch_ < first_epochs() ? 0 : 1];
  }
  int64_t first_epochs() const { return std::max<int64_t>(1, epochs_ / 2); }
  bool in_first_half(int64_t item) const {
    return table_.x[static_cast<size_t>(item) * columns_.size()] <
           (scales_.low[0] + scales_.high[0]) / 2;
  }
  // Errors of the test rows, in units of the target's standard deviation.
  double first_half_error() {
    std::vector<int64_t> first;
    for (const int64_t item : splits_.test)
      if (in_first_half(item)) first.push_back(item);
    if (first.empty()) return 0;
    return (model_->mix(inputs(first)).output - targets(first)).square().mean().item<double>();
  }

  // Starts wide, so that every expert learns from every item, and becomes narrow.
  double deviation() const {
    const double least = run_options_.options.number("deviation"),
                 share = static_cast<double>(epoch_) / (0.6 * static_cast<double>(epochs_));
    return std::max(least, std::pow(least, share));
  }

  // The share of items whose first expert is the owner of their piece; an expert owns one piece at
  // most, the one it has most of.
  double owned(const std::vector<int64_t>& items, const nn::Mixed& mixed) const {
    const int64_t experts = model_->experts->options().experts;
    torch::Tensor count = torch::zeros({data::kStraightPieces, experts});
    for (size_t i = 0; i < items.size(); ++i)
      count[piece_[static_cast<size_t>(items[i])]]
           [mixed.chosen[static_cast<int64_t>(i)][0].item<int64_t>()] += 1;
    double hits = 0;
    for (int64_t i = 0; i < std::min(data::kStraightPieces, experts); ++i) {
      const int64_t best = count.argmax().item<int64_t>();
      hits += std::max(0.0f, count.flatten()[best].item<float>());
      count.select(0, best / experts).fill_(-1);
      count.select(1, best % experts).fill_(-1);
    }
    return hits / static_cast<double>(items.size());
  }

  CurvePoints points(const std::vector<int64_t>& items) {
    constexpr int64_t kMeasured = 300, kDrawn = 401;
    CurvePoints out{.x_label = columns_[0], .y_label = target_};
    for (size_t i = 0; i < items.size() && i < kMeasured; ++i) {
      out.x.push_back(table_.x[static_cast<size_t>(items[i])]);
      out.y.push_back(table_.y[static_cast<size_t>(items[i])]);
    }
    const torch::Tensor at = torch::linspace(-1, 1, kDrawn).unsqueeze(1).to(run_options_.device);
    const nn::Mixed mixed = model_->mix(at);
    const torch::Tensor first = mixed.answers_of.columns.reshape(mixed.gates.sizes()).select(1, 0);
    const torch::Tensor own = mixed.answers.index_select(0, first);
    for (int64_t i = 0; i < kDrawn; ++i) {
      const double place = (at[i][0].item<double>() + 1) / 2;
      out.at.push_back(scales_.low[0] + place * (scales_.high[0] - scales_.low[0]));
      out.mixed.push_back(scales_.in_units(mixed.output[i].item<double>()));
      out.owner.push_back(mixed.chosen[i][0].item<int64_t>());
      out.own.push_back(scales_.in_units(own[i].item<double>()));
    }
    return out;
  }

  const int64_t epochs_;
  const bool in_turn_;
  int64_t epoch_ = 0;
  std::vector<int64_t> piece_;  // of each generated row
  mutable std::vector<int64_t> halves_[2];
  std::shared_ptr<CurveModel> model_;
};

}  // namespace

std::unique_ptr<Task> make_curve(const RunOptions& run_options) {
  return std::make_unique<Curve>(run_options);
}

}  // namespace fovea::systems::mixture_of_experts
