// Effect of attention on gradients: o = a_1 x_1 + a_2 x_2, a = softmax(e).
//   direct       dL/dx_i = a_i dL/do
//   by the score dL/de_i = a_i (x_i - o)·dL/do      (with two inputs: ± a_1 a_2 (x_1 - x_2)·dL/do)
// At a = (1, 0) the second input receives nothing, and both score gradients vanish: a saturated
// softmax freezes its own choice.
#include "systems/gradient_masking/gradient_masking.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>

#include "data/files/file.h"
#include "fovea/attend.h"
#include "systems/system.h"
#include "train/answers.h"
#include "train/descent/fit.h"
#include "train/task.h"

namespace fovea::systems::gradient_masking {

torch::Tensor mix(const torch::Tensor& x, const torch::Tensor& e) {
  // The query is the row of scores.
  return attend(e.reshape({1, 1, 1, 2}), torch::zeros({1, 1, 2, 1}, x.options()),
                x.reshape({1, 1, 2, -1}), {.score = Location{}})
      .flatten();
}

Gradients gradients(const torch::Tensor& x, const torch::Tensor& e,
                    const torch::Tensor& at_output) {
  const torch::AutoGradMode enabled(true);
  const torch::Tensor values = x.detach().clone().requires_grad_(),
                      scores = e.detach().clone().requires_grad_();
  mix(values, scores).backward(at_output);
  Gradients out{values.grad(), scores.grad(), {}, {}};
  const torch::Tensor a = scores.detach().softmax(0), o = mix(x, e).detach();
  out.x_formula = a.unsqueeze(1) * at_output.unsqueeze(0);
  out.e_formula = a * (x - o.unsqueeze(0)).matmul(at_output);
  return out;
}

namespace {

constexpr int64_t kWidth = 4;

struct Model : torch::nn::Module {
  Model() {
    x = register_parameter("x", torch::randn({2, kWidth}, torch::kFloat64));
    e = register_parameter("e", torch::zeros({2}, torch::kFloat64));
    start = register_buffer("start", torch::zeros({2, kWidth}, torch::kFloat64));
    target = register_buffer("target", torch::randn({kWidth}, torch::kFloat64));
  }
  torch::Tensor x, e, start, target;
};

// Learns o = target from two inputs, with e_1 - e_2 set so far apart that the second input is never
// attended to.
class Masking : public GradientTask {
 public:
  explicit Masking(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source& source) override {
    if (!source.path.empty())
      throw data::FileError(source.path, 0, "gradient-masking is an exact toy and takes no data");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    model_ = std::make_shared<Model>();
    const torch::NoGradGuard guard;
    model_->e.copy_(torch::tensor({run_options_.options.number("gap"), 0.0}, torch::kFloat64));
    model_->start.copy_(model_->x);
    return model_;
  }
  int64_t items(Split split) const override { return split == Split::kTrain ? 1 : 0; }
  Loss loss(const Batch&) override {
    return {(mix(model_->x, model_->e) - model_->target).square().sum(), 1};
  }

  Evaluation evaluate(Split) override {
    Evaluation out;
    const torch::Tensor moved = (model_->x - model_->start).abs().amax(1);
    double worst = 0;
    for (double gap = -12; gap <= 12; gap += 0.5) {
      const Gradients g = gradients(model_->x, torch::tensor({gap, 0.0}, torch::kFloat64),
                                    torch::ones({kWidth}, torch::kFloat64));
      worst = std::max({worst, (g.x - g.x_formula).abs().max().item<double>(),
                        (g.e - g.e_formula).abs().max().item<double>()});
    }
    out.items = 2;
    out.metrics = {
        {"moved_attended", moved[0].item<double>()},
        {"moved_unattended", moved[1].item<double>()},
        {"identity_error", worst},
        {"loss", (mix(model_->x, model_->e) - model_->target).square().sum().item<double>()}};
    out.attention = {{"weight_1", model_->e.softmax(0)[0].item<double>()}};
    return out;
  }

  // A line is e_1 - e_2; the answer: both weights and both score gradients for dL/do = 1.
  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t line, std::string_view text, std::ostream& to) {
      const double gap = data::parse_number(text, "e1 - e2", input.name, line);
      const torch::Tensor e = torch::tensor({gap, 0.0}, torch::kFloat64);
      const Gradients g = gradients(model_->x, e, torch::ones({kWidth}, torch::kFloat64));
      const torch::Tensor a = e.softmax(0);
      to << fmt::format("{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\n", a[0].item<double>(),
                        a[1].item<double>(), g.e[0].item<double>(), g.e[1].item<double>());
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input) throw UsageError("--input: gradient-masking is an exact toy and draws itself");
    explain::Explanation out;
    out.title = "Gradients through o = a₁x₁ + a₂x₂";
    out.view = explain::View::kGraph;
    out.score = "given";
    out.normaliser = "softmax";
    out.structure = "both inputs";
    out.scale = "1";
    out.query_label = "from";
    out.key_label = "to";
    out.notes = {
        "Edge width is the size of the gradient that flows back along it, for a loss gradient of 1 "
        "at every coordinate of o.",
        "At a = (1, 0) x₂ receives nothing and both score gradients are zero. Plain gradient "
        "descent then never moves x₂; an optimiser "
        "with momentum or weight decay would go on moving it, and must leave it out."};
    const char* names[] = {"loss", "o", "x₁", "x₂", "e₁", "e₂"};
    const double positions[][2] = {{0.95, 0.5}, {0.65, 0.5}, {0.15, 0.2},
                                   {0.15, 0.8}, {0.4, 0.1},  {0.4, 0.9}};
    for (size_t i = 0; i < 6; ++i) {
      auto& item = out.queries.emplace_back();
      item.text = names[i];
      item.position = {positions[i][0], positions[i][1]};
      out.keys.push_back(item);
    }
    out.layers = {"e₁ − e₂", {}};
    explain::Plot curve;
    curve.title = "How much a score can still learn";
    curve.x_label = "e₁ − e₂";
    curve.y_label = "gradient";
    explain::Curve measured, formula, direct;
    measured.label = "|∂L/∂e₁|";
    formula.label = "a(1 − a)·gap";
    formula.kind = explain::Curve::Kind::kPoints;
    direct.label = "|∂L/∂x₂| / |∂L/∂o|";
    const torch::Tensor ones = torch::ones({kWidth}, torch::kFloat64);
    const double gap_size = std::abs((model_->x[0] - model_->x[1]).sum().item<double>());
    int layer = 0;
    for (double gap = -10; gap <= 10; gap += 1) {
      const torch::Tensor e = torch::tensor({gap, 0.0}, torch::kFloat64);
      const Gradients g = gradients(model_->x, e, ones);
      const double a = e.softmax(0)[0].item<double>();
      out.layers.names.push_back(fmt::format("{:g}", gap));
      auto& map = out.maps.emplace_back();
      map.layer = layer++;
      map.links = {{0, 1, static_cast<float>(ones.norm().item<double>())},
                   {1, 2, static_cast<float>(g.x[0].norm().item<double>())},
                   {1, 3, static_cast<float>(g.x[1].norm().item<double>())},
                   {1, 4, static_cast<float>(std::abs(g.e[0].item<double>()))},
                   {1, 5, static_cast<float>(std::abs(g.e[1].item<double>()))}};
      measured.x.push_back(gap);
      measured.y.push_back(std::abs(g.e[0].item<double>()));
      formula.x.push_back(gap);
      formula.y.push_back(a * (1 - a) * gap_size);
      direct.x.push_back(gap);
      direct.y.push_back(g.x[1].norm().item<double>() / ones.norm().item<double>());
    }
    out.layers.chosen = layer / 2;  // equal scores
    curve.curves = {measured, formula, direct};
    out.plots.push_back(curve);
    return {out};
  }

 private:
  const RunOptions run_options_;
  std::shared_ptr<Model> model_;
};

const Registration registered{{
    .info =
        {.name = "gradient-masking",
         .number = 10,
         .title = "What attention does to gradients",
         .idea = "An input receives its gradient multiplied by its weight: what is not "
                 "attended to does not change. And the scores' own gradient is "
                 "a(1 − a) times the difference between the inputs: where the choice is made, "
                 "it can no longer be unmade. Attention shields unused "
                 "parts from change, and dead experts stay dead.\n\nThe run here learns with "
                 "two inputs of which the second is never attended to. It "
                 "must not move at all, and does not.",
         .paper = "Ylipää 2020 (lecture)",
         .equation =
             R"(\frac{\partial L}{\partial x_i} = a_i \frac{\partial L}{\partial o}, \quad \frac{\partial L}{\partial e_i} = a_i\, (x_i - o)^\top \frac{\partial L}{\partial o})",
         .code = "auto o = fovea::attend(scores, keys, x, {.score = "
                 "fovea::Location{}});\no.backward(gradient_at_o);\nx.grad();       // a_i * "
                 "gradient_at_o\nscores.grad();  // a_i (x_i - o)·gradient_at_o",
         .triple = {.query = "the scores themselves",
                    .key = "none",
                    .value = "x_1, x_2",
                    .score = "location",
                    .normaliser = "softmax",
                    .structure = "all"},
         .formats = {"none: an exact toy"},
         .expect =
             "measured: largest identity error 6e-16; the unattended input moves by exactly 0"},
    .options = {Option("gap", 800.0,
                       "e_1 - e_2 during training; 800 makes a_2 exactly 0 in double precision")
                    .between(-1e6, 1e6)},
    .recipe =
        train::Recipe{.epochs = 200, .batch = 1, .optimiser = "sgd", .rate = 0.1, .keep = "last"},
    .make = [](const RunOptions& run_options) -> std::unique_ptr<Task> {
      return std::make_unique<Masking>(run_options);
    },
}};

}  // namespace
}  // namespace fovea::systems::gradient_masking
