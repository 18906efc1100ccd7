#include "train/fit.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "data/json.h"
#include "train/fields.h"
#include "train/finite.h"
#include "train/interrupt.h"
#include "train/tensor_file.h"

namespace fovea::train {
namespace {

constexpr const char* kState = "state.safetensors";
constexpr const char* kMetrics = "metrics.jsonl";

}  // namespace

Fit::Fit(const Setting& setting, std::shared_ptr<torch::nn::Module> model, const RunFolder& folder,
         Progress& progress)
    : setting_(setting), model_(std::move(model)), folder_(folder), progress_(progress) {}

void Fit::record(Json line) { lines_.push_back(line.dump()); }

std::optional<State> Fit::resume() {
  if (!folder_.has(kState)) return std::nullopt;
  TensorFile file = read_tensors((folder_ / kState).string());
  const std::string path = (folder_ / kState).string();
  State state{data::parse_json(file.metadata["state"], path), std::move(file.tensors)};
  lines_ = Fields(state.numbers, path + ": ").texts("lines");
  return state;
}

bool Fit::save_due() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - saved_).count() >=
         save_every_seconds;
}

void Fit::save(const State& state) {
  Json numbers = state.numbers;
  numbers["lines"] = lines_;
  folder_.write(kState, tensor_bytes({state.tensors, {{"state", numbers.dump()}}}));
  write_metrics();
  saved_ = std::chrono::steady_clock::now();
}

void Fit::stop_if_interrupted(const std::string& where) const {
  if (interrupted())
    throw Interrupted(fmt::format("stopped {}: the same command with --resume continues", where));
}

void Fit::write_metrics() const {
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  folder_.write(kMetrics, text);
}

void Fit::finish() { write_metrics(); }

TensorMap weights_of(const torch::nn::Module& model) {
  TensorMap out;
  for (const auto& item : model.named_parameters()) out[item.key()] = item.value();
  for (const auto& item : model.named_buffers()) out[item.key()] = item.value();
  return out;
}

void check_weights(const torch::nn::Module& model, const TensorMap& given,
                   const std::string& origin) {
  if (const std::string name = not_finite(given); !name.empty())
    throw InvalidArgument(
        fmt::format("{}: weight '{}' has entries that are not finite", origin, name));
  const TensorMap own = weights_of(model);
  for (const auto& [name, tensor] : own) {
    const auto found = given.find(name);
    if (found == given.end())
      throw InvalidArgument(
          fmt::format("{}: no weight '{}', expected one of the model", origin, name));
    if (found->second.sizes() != tensor.sizes())
      throw InvalidArgument(fmt::format("{}: weight '{}' has shape {}, expected {}", origin, name,
                                        c10::str(found->second.sizes()), c10::str(tensor.sizes())));
  }
  for (const auto& [name, tensor] : given)
    if (!own.contains(name))
      throw InvalidArgument(fmt::format("{}: weight '{}' is not one of the model's", origin, name));
}

void set_weights(torch::nn::Module& model, const TensorMap& given, const std::string& origin) {
  const torch::NoGradGuard guard;
  check_weights(model, given, origin);
  for (auto& [name, tensor] : weights_of(model)) torch::Tensor(tensor).copy_(given.at(name));
}

}  // namespace fovea::train
