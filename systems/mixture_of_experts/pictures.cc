// Classes of pictures, by a few experts for each picture.
#include <fmt/format.h>
#include <torch/torch.h>

#include "systems/mixture_of_experts/model.h"
#include "systems/mixture_of_experts/tasks.h"
#include "systems/mixture_of_experts/view.h"
#include "systems/picture_task.h"

namespace fovea::systems::mixture_of_experts {
namespace {

class PictureExperts : public PictureTask {
 public:
  using PictureTask::PictureTask;

  std::shared_ptr<torch::nn::Module> build() override {
    return model_ = std::make_shared<PictureModel>(pictures_.channels, pictures_.side,
                                                   static_cast<int64_t>(pictures_.classes.size()),
                                                   run_options_.options);
  }

  Loss loss(const Batch& batch) override {
    Loss out = PictureTask::loss(batch);
    out.mean = out.mean + run_options_.options.number("balance") * model_->balance(batch.epoch);
    return out;
  }

  Evaluation evaluate(Split split) override {
    load_ = torch::zeros({model_->experts->options().experts});
    overflow_ = 0;
    Evaluation out = PictureTask::evaluate(split);
    if (out.metrics.empty()) return out;
    out.metrics["load_max_mean"] = largest_over_mean(load_);
    out.metrics["overflow"] = overflow_share(overflow_, load_);
    return out;
  }

 protected:
  data::DigitSets generated(uint64_t seed) override {
    return data::digits_of("", run_options_.options.integer("pictures"), 1000, seed);
  }
  torch::Tensor judged(const torch::Tensor& pixels) override {
    const torch::Tensor out = model_->forward(pixels);
    if (load_.defined() && !model_->is_training()) {
      load_ += model_->experts->last().load.cpu();
      overflow_ += model_->experts->last().overflow;
    }
    return out;
  }

  std::vector<double> counted() const override {
    std::vector<double> out = {static_cast<double>(overflow_)};
    if (!load_.defined()) return out;
    for (const float one : to_floats(load_)) out.push_back(one);
    return out;
  }
  void set_counted(const std::vector<double>& counts) override {
    overflow_ = static_cast<int64_t>(counts[0]);
    if (load_.defined())
      load_ = torch::tensor(std::vector<double>(counts.begin() + 1, counts.end()), torch::kFloat64)
                  .to(load_.scalar_type());
  }

  std::string remark(const torch::Tensor&) override {
    const nn::Mixed& mixed = model_->experts->last();
    std::string out;
    for (int64_t i = 0; i < mixed.chosen.size(1); ++i)
      out += fmt::format("{}expert {} {:.3f}", i ? ", " : "",
                         mixed.chosen[0][i].item<int64_t>() + 1, mixed.gates[0][i].item<double>());
    return out;
  }

  std::vector<explain::Explanation> drawn(const std::vector<ShownPicture>& shown) override {
    constexpr size_t kMostItems = 400;  // as many as the view draws
    const nn::MixtureOfExpertsOptions& options = model_->experts->options();
    Routing routing{.loads = model_->loads};
    std::vector<torch::Tensor> pictures;
    for (const PictureGroup& group :
         groups(shown, std::max<size_t>(1, kMostItems / pictures_.classes.size()))) {
      const auto kind = static_cast<int64_t>(routing.kinds.size());
      routing.kind_of.insert(routing.kind_of.end(), static_cast<size_t>(group.pixels.size(0)),
                             kind);
      routing.kinds.push_back(group.name);
      pictures.push_back(group.pixels);
    }
    model_->forward(torch::cat(pictures));
    routing.gates = dense_gates(model_->experts->last(), options.experts);
    return {who_does_what(routing, options,
                          splits_.test.empty() ? "The experts of each picture"
                                               : "Which expert is selected for which class")};
  }

 private:
  torch::Tensor load_;  // of what is judged
  int64_t overflow_ = 0;
  std::shared_ptr<PictureModel> model_;
};

}  // namespace

std::unique_ptr<Task> make_pictures(const RunOptions& run_options) {
  return std::make_unique<PictureExperts>(run_options);
}

}  // namespace fovea::systems::mixture_of_experts
