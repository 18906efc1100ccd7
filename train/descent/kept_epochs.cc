#include "train/descent/kept_epochs.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "train/descent/fit.h"

namespace fovea::train {
namespace {

// The names in a state of what was kept of the n-th epoch.
std::string name_of(size_t n) { return fmt::format("kept.{}.", n); }

}  // namespace

Standing standing(const Recipe& recipe, const GradientTask& task, const Metrics& metrics) {
  const double value = metrics.at(recipe.monitor);
  const auto loss = metrics.find("loss");
  const bool tie = loss != metrics.end() && task.ties_go_to_the_lower_loss();
  return {lower_is_better(recipe.monitor) ? value : -value, tie ? loss->second : 0};
}

void KeptEpochs::keep(int64_t epoch, const Metrics& metrics, const torch::nn::Module& model) {
  const bool best = recipe_.keep == "best" && !metrics.empty();
  if (!best && recipe_.average == 1) return;
  const Standing now =
      best ? standing(recipe_, task_, metrics) : Standing{static_cast<double>(-epoch), 0};
  // Equal ones stay in the order in which they came.
  const auto place =
      std::upper_bound(kept_.begin(), kept_.end(), now,
                       [](const Standing& a, const Kept& b) { return a < b.standing; });
  if (place - kept_.begin() >= recipe_.average) return;
  kept_.insert(place, {epoch, now, copies(weights_of(model))});
  if (static_cast<int64_t>(kept_.size()) > recipe_.average) kept_.pop_back();
}

TensorMap KeptEpochs::mean() const {
  TensorMap out;
  for (const auto& [name, first] : kept_.front().weights) {
    if (!first.is_floating_point() || kept_.size() == 1) {
      out[name] = first;
      continue;
    }
    torch::Tensor sum = torch::zeros_like(first, torch::kFloat64);
    for (const Kept& one : kept_) sum += one.weights.at(name);
    out[name] = (sum / static_cast<double>(kept_.size())).to(first.scalar_type());
  }
  return out;
}

void KeptEpochs::put_into(State& state) const {
  // The JSON library makes a list of nothing in two steps, and a list that is half made ends the
  // process where memory ends between them.
  if (!kept_.empty()) state.numbers["kept"] = Json::array();
  for (size_t i = 0; i < kept_.size(); ++i) {
    const std::string name = name_of(i);
    state.numbers["kept"].push_back(kept_[i].epoch);
    put(state.tensors, name + "weights.", kept_[i].weights);
    state.tensors[name + "value"] = torch::tensor(kept_[i].standing.value, torch::kFloat64);
    state.tensors[name + "loss"] = torch::tensor(kept_[i].standing.loss, torch::kFloat64);
  }
}

void KeptEpochs::restore(const Fields& numbers, const TensorMap& tensors,
                         const torch::nn::Module& model, torch::Device device) {
  if (!numbers.has("kept")) return;
  for (const double epoch : numbers.numbers("kept")) {
    const std::string name = name_of(kept_.size());
    kept_.push_back({static_cast<int64_t>(epoch),
                     {saved_number(tensors, name + "value"), saved_number(tensors, name + "loss")},
                     take(tensors, name + "weights.")});
    check_weights(model, kept_.back().weights, kStateFile);
    for (auto& [key, weight] : kept_.back().weights) weight = weight.to(device);
  }
}

}  // namespace fovea::train
