#include "systems/gradient_masking/task.h"

#include <fmt/format.h>

#include "data/files/file.h"
#include "systems/gradient_masking/model.h"
#include "systems/gradient_masking/view.h"
#include "train/answers.h"
#include "train/descent/fit.h"

namespace fovea::systems::gradient_masking {
namespace {

// Learns o = target from two inputs. e_1 - e_2 is so large that the second input is never attended
// to.
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
    answer_lines(input, out, [&](size_t line, std::string_view text) -> Answered {
      const double gap = data::parse_number(text, "e1 - e2", input.name, line);
      const torch::Tensor e = torch::tensor({gap, 0.0}, torch::kFloat64);
      const Gradients g = gradients(model_->x, e, torch::ones({kWidth}, torch::kFloat64));
      const torch::Tensor a = e.softmax(0);
      return {fmt::format("{:.6g}\t{:.6g}\t{:.6g}\t{:.6g}\n", a[0].item<double>(),
                          a[1].item<double>(), g.e[0].item<double>(), g.e[1].item<double>()),
              [a, g] {
                return Json{{"answer", to_floats(a)}, {"score_gradients", to_floats(g.e)}};
              }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    if (input) throw UsageError("--input: gradient-masking is an exact toy and draws itself");
    return {picture(model_->x)};
  }

 private:
  const RunOptions run_options_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_gradient_masking(const RunOptions& run_options) {
  return std::make_unique<Masking>(run_options);
}

}  // namespace fovea::systems::gradient_masking
