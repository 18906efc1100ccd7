#include "train/descent/fit.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include "data/files/json.h"
#include "io/sha256.h"
#include "train/descent/finite.h"
#include "train/fields.h"
#include "train/interrupt.h"
#include "train/run/tensor_file.h"

namespace fovea::train {
namespace {

constexpr const char* kMetrics = "metrics.jsonl";

}  // namespace

Fit::Fit(const RunOptions& run_options, std::shared_ptr<torch::nn::Module> model, Draft& draft,
         std::string configuration, Progress& progress)
    : Fit(run_options, std::move(model), &draft, std::move(configuration), progress, nullptr) {}

Fit::Fit(const RunOptions& run_options, std::shared_ptr<torch::nn::Module> model, Draft* draft,
         std::string configuration, Progress& progress, Ranks* ranks)
    : run_options_(run_options),
      model_(std::move(model)),
      draft_(draft),
      configuration_(std::move(configuration)),
      progress_(progress),
      ranks_(ranks) {}

void Fit::record(Json line) { lines_.push_back(line.dump()); }

// Of the file that this rank, or rank 0, has; empty: there is none.
std::string Fit::state_bytes() {
  std::string bytes;
  if (draft_ && draft_->has(kStateFile)) bytes = draft_->read(kStateFile);
  return ranks_ ? ranks_->broadcast(bytes, "the state to continue from") : bytes;
}

std::optional<State> Fit::resume() {
  const std::string bytes = state_bytes();
  if (bytes.empty()) return std::nullopt;
  const std::string path = draft_ ? (*draft_ / kStateFile).string() : kStateFile;
  TensorFile file = parse_tensors(bytes, path);
  if (file.metadata["sha256"] != io::sha256(file.metadata["state"] + sum_of(file.tensors)))
    throw InvalidArgument(fmt::format(
        "{}: damaged: what it holds is not what was written; --overwrite starts again", path));
  if (file.metadata["configuration"] != configuration_)
    throw InvalidArgument(fmt::format(
        "{}: the state of another configuration ({}, expected {}); --overwrite starts again", path,
        file.metadata["configuration"].substr(0, 12), configuration_.substr(0, 12)));
  State state{data::parse_json(file.metadata["state"], path), std::move(file.tensors)};
  lines_ = Fields(state.numbers, path + ": ").texts("lines");
  return state;
}

bool Fit::save_due() const {
  return draft_ &&
         std::chrono::duration<double>(std::chrono::steady_clock::now() - saved_).count() >=
             save_every_seconds;
}

void Fit::save(const State& state) {
  if (!draft_) return;
  Json numbers = state.numbers;
  numbers["lines"] = lines_;
  const std::string text = numbers.dump();
  draft_->write(kStateFile, tensor_bytes({state.tensors,
                                          {{"state", text},
                                           {"configuration", configuration_},
                                           {"sha256", io::sha256(text + sum_of(state.tensors))}}}));
  write_metrics();
  saved_ = std::chrono::steady_clock::now();
}

void Fit::stop_if_interrupted(const std::string& where) const {
  if (interrupted())
    throw Interrupted(fmt::format("stopped {}: the same command with --resume continues", where));
}

void Fit::write_metrics() {
  if (!draft_) return;
  std::string text;
  for (const std::string& line : lines_) text += line + "\n";
  draft_->write(kMetrics, text);
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
