#include "systems/squeeze_excitation/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "data/generated/channels.h"
#include "systems/picture_task.h"
#include "systems/squeeze_excitation/model.h"
#include "systems/squeeze_excitation/view.h"

namespace fovea::systems::squeeze_excitation {
namespace {

class SqueezeExcitation : public PictureTask {
 public:
  using PictureTask::PictureTask;

  void read(const Source& source) override {
    useful_.clear();
    PictureTask::read(source);
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& options = run_options_.options;
    return model_ = std::make_shared<Model>(
               Shape{.inputs = pictures_.channels,
                     .side = pictures_.side,
                     .classes = static_cast<int64_t>(pictures_.classes.size()),
                     .channels = options.integer("channels"),
                     .layers = options.integer("layers"),
                     .reduction = options.integer("reduction"),
                     .gated = options.text("gate") == "on",
                     .residual = options.flag("residual")});
  }

  // Whether the largest gate of the picture's own channels is that of the channel that counts.
  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    if (useful_.empty()) return out;
    const std::vector<Gated> places = model_->look(pixels(items));
    if (places.empty()) return out;
    const torch::Tensor first = places.front().gates.argmax(1).cpu();
    for (size_t i = 0; i < items.size(); ++i)
      out.push_back(first[static_cast<int64_t>(i)].item<int64_t>() ==
                    useful_[static_cast<size_t>(items[i])]);
    return out;
  }

  Evaluation evaluate(Split split) override {
    Evaluation out = PictureTask::evaluate(split);
    if (out.metrics.empty()) return out;
    const Cost cost = model_->cost();
    out.metrics["parameters"] = static_cast<double>(cost.parameters);
    out.metrics["gate_parameters"] = static_cast<double>(cost.gate_parameters);
    out.metrics["flops"] = static_cast<double>(cost.flops);
    out.metrics["gate_flops"] = static_cast<double>(cost.gate_flops);
    return out;
  }

  Written write() const override {
    Written out = PictureTask::write();
    out.truth = "truth.jsonl, the channel that counts";
    out.files["truth.jsonl"] = data::truth_lines(useful_, pictures_.size() - pictures_.own_test);
    return out;
  }

 protected:
  data::DigitSets generated(uint64_t seed) override {
    data::MarkedChannels made =
        data::generate_channels(run_options_.options.integer("inputs"),
                                run_options_.options.integer("pictures"), 1000, seed);
    useful_ = std::move(made.useful);
    return std::move(made.sets);
  }
  torch::Tensor judged(const torch::Tensor& pixels) override { return model_->forward(pixels); }

  // The first place's gates: those of the picture's channels, or of the first layer.
  std::string remark(const torch::Tensor& pixels) override {
    const std::vector<Gated> places = model_->look(pixels);
    if (places.empty()) return "";
    const torch::Tensor gates = places.front().gates[0];
    return fmt::format("{}: channel {} has the largest gate, {:.3f}", places.front().name,
                       gates.argmax().item<int64_t>() + 1, gates.max().item<double>());
  }

  std::vector<explain::Explanation> drawn(const std::vector<ShownPicture>& shown) override {
    std::vector<explain::Explanation> out =
        gates_by_group(*model_, groups(shown, kPicturesOfAClass));
    const ShownPicture& first = shown.front();
    const std::string answer = outcome(first);
    for (const Gated& place : model_->look(first.pixels.unsqueeze(0))) {
      const bool known = first.item && !useful_.empty() && place.name == "picture";
      const int64_t useful = known ? useful_[static_cast<size_t>(*first.item)] : -1;
      // Where one channel is known to count, its picture comes before means over classes.
      out.insert(known ? out.begin() : out.end(),
                 before_and_after(place, first.name, answer, useful));
    }
    if (out.empty()) out.push_back(without_gates(answer));
    return out;
  }

 private:
  static constexpr size_t kPicturesOfAClass = 50;

  std::vector<int64_t> useful_;  // the channel that counts, of generated pictures
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_squeeze_excitation(const RunOptions& run_options) {
  return std::make_unique<SqueezeExcitation>(run_options);
}

}  // namespace fovea::systems::squeeze_excitation
