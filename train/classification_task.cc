#include "train/classification_task.h"

#include <torch/torch.h>

#include "data/batches.h"
#include "data/packed.h"
#include "metrics/classification.h"
#include "train/descent/finite.h"
#include "train/descent/recipe.h"
#include "train/interrupt.h"

namespace fovea {

std::vector<int64_t> at_positions(const std::vector<int64_t>& split,
                                  std::span<const int64_t> positions) {
  std::vector<int64_t> out;
  out.reserve(positions.size());
  for (const int64_t position : positions) out.push_back(split.at(static_cast<size_t>(position)));
  return out;
}

std::vector<int64_t> ClassificationTask::lengths() const {
  std::vector<int64_t> out;
  if (lengths_.empty()) return out;
  for (const int64_t item : splits_.train) out.push_back(lengths_[static_cast<size_t>(item)]);
  return out;
}

torch::Tensor ClassificationTask::classes(std::span<const int64_t> items) const {
  return data::gather(labels_, items).to(run_options_.device);
}

void ClassificationTask::count_zeros(const torch::Tensor& weights) {
  weights_seen_ += static_cast<double>(weights.numel());
  zeros_seen_ += static_cast<double>(weights.eq(0).sum().item<int64_t>());
}

Loss ClassificationTask::loss(const Batch& batch) {
  const std::vector<int64_t> items = at_positions(splits_.train, batch.items);
  return {torch::nn::functional::cross_entropy(logits(items), classes(items)),
          static_cast<int64_t>(items.size())};
}

Evaluation ClassificationTask::evaluate(Split split) {
  const std::vector<int64_t>& all = splits_.of(split);
  std::vector<int64_t> lengths;
  if (!lengths_.empty())
    for (const int64_t item : all) lengths.push_back(lengths_[static_cast<size_t>(item)]);
  std::vector<int64_t> predicted, truth;
  std::vector<double> positive;
  double loss = 0, hit = 0, known = 0;
  weights_seen_ = zeros_seen_ = 0;
  int64_t class_count = 0;
  // Evaluation keeps nothing for a backward pass, so it takes four batches at once.
  const train::Recipe recipe = train::recipe_of(run_options_.options);
  for (const auto& positions :
       data::ordered_batches(static_cast<int64_t>(all.size()), lengths,
                             {.items = 4 * recipe.batch, .tokens = 4 * recipe.batch_tokens})) {
    train::stop_if_interrupted("while judging");
    const std::vector<int64_t> items = at_positions(all, positions);
    const torch::Tensor scores = train::finite(logits(items), "logits").to(torch::kFloat64);
    const torch::Tensor labels = classes(items);
    loss +=
        torch::nn::functional::cross_entropy(
            scores, labels, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
            .item<double>();
    class_count = scores.size(1);
    const torch::Tensor best = scores.argmax(1).cpu(), true_class = labels.cpu();
    const torch::Tensor second =
        (class_count == 2 ? scores.select(1, 1) - scores.select(1, 0) : scores.select(1, 0)).cpu();
    for (int64_t i = 0; i < best.size(0); ++i) {
      predicted.push_back(best[i].item<int64_t>());
      truth.push_back(true_class[i].item<int64_t>());
      positive.push_back(second[i].item<double>());
    }
    for (const int one : hits(items)) {
      hit += one > 0;
      known += one >= 0;
    }
  }
  Evaluation out;
  out.items = static_cast<int64_t>(truth.size());
  if (truth.empty()) {
    out.notes.push_back("no items to evaluate, so no figures");
    return out;
  }
  const double accuracy = metrics::accuracy(predicted, truth);
  out.metrics = {{"loss", loss / static_cast<double>(truth.size())},
                 {"accuracy", accuracy},
                 {"error", 1 - accuracy},
                 {"f1", metrics::macro_f1(predicted, truth)}};
  if (class_count == 2) {
    if (const auto area = metrics::auc(positive, truth))
      out.metrics["auc"] = *area;
    else
      out.notes.push_back("auc: undefined, all items are of one class");
  }
  if (known > 0) out.attention["hit_rate"] = hit / known;
  if (weights_seen_ > 0) out.attention["zeros"] = zeros_seen_ / weights_seen_;
  return out;
}

}  // namespace fovea
