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
    PictureTask::read(source);
    useful_.clear();
    if (source.path.empty()) useful_ = channels(source.seed).useful;
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

  // Does the largest gate of the picture's own channels belong to the one that counts?
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
    std::string& truth = out.files["truth.jsonl"];
    const int64_t learned_from = pictures_.size() - pictures_.own_test;
    for (int64_t i = 0; i < static_cast<int64_t>(useful_.size()); ++i)
      truth += Json{{"file", i < learned_from ? "train" : "t10k"},
                    {"picture", i < learned_from ? i : i - learned_from},
                    {"channel", useful_[static_cast<size_t>(i)]}}
                   .dump() +
               "\n";
    return out;
  }

 protected:
  data::DigitSets generated(uint64_t seed) const override { return channels(seed).sets; }
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
    const std::vector<Kind> kinds = rows(shown);
    std::vector<explain::Explanation> out = gates_by_kind(*model_, kinds);
    const ShownPicture& first = shown.front();
    const torch::Tensor one = first.pixels.unsqueeze(0);
    const torch::Tensor p = model_->forward(one).softmax(1)[0];
    const std::string outcome = fmt::format(
        "{}, p = {:.3f}", pictures_.classes[static_cast<size_t>(p.argmax().item<int64_t>())],
        p.max().item<double>());
    for (const Gated& place : model_->look(one)) {
      const bool known = first.item && !useful_.empty() && place.name == "picture";
      out.push_back(before_and_after(place, first.name, outcome,
                                     known ? useful_[static_cast<size_t>(*first.item)] : -1));
    }
    if (out.empty()) out.push_back(without_gates(outcome));
    return out;
  }

 private:
  static constexpr size_t kPicturesOfAClass = 50;

  data::MarkedChannels channels(uint64_t seed) const {
    return data::generate_channels(run_options_.options.integer("inputs"),
                                   run_options_.options.integer("pictures"), 1000, seed);
  }

  // A row for each class of the test pictures, or for each picture given.
  std::vector<Kind> rows(const std::vector<ShownPicture>& shown) const {
    std::vector<Kind> out;
    if (splits_.test.empty()) {
      for (const ShownPicture& one : shown) out.push_back({one.name, one.pixels.unsqueeze(0)});
      return out;
    }
    std::vector<std::vector<int64_t>> of_class(pictures_.classes.size());
    for (const int64_t item : splits_.test) {
      auto& items = of_class[static_cast<size_t>(labels_[static_cast<size_t>(item)])];
      if (items.size() < kPicturesOfAClass) items.push_back(item);
    }
    for (size_t i = 0; i < of_class.size(); ++i)
      if (!of_class[i].empty())
        out.push_back({"class " + pictures_.classes[i], pixels(of_class[i])});
    return out;
  }

  std::vector<int64_t> useful_;  // the channel that counts, of generated pictures
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_squeeze_excitation(const RunOptions& run_options) {
  return std::make_unique<SqueezeExcitation>(run_options);
}

}  // namespace fovea::systems::squeeze_excitation
