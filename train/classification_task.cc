#include "train/classification_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "data/batches.h"
#include "data/packed.h"
#include "metrics/classification.h"
#include "train/descent/finite.h"
#include "train/descent/recipe.h"
#include "train/interrupt.h"
#include "train/ranks/shared_work.h"

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
  count_zeros(static_cast<double>(weights.numel()),
              static_cast<double>(weights.eq(0).sum().item<int64_t>()));
}

void ClassificationTask::count_zeros(double weights, double zeros) {
  weights_seen_ += weights;
  zeros_seen_ += zeros;
}

Loss ClassificationTask::loss(const Batch& batch) {
  const std::vector<int64_t> items = at_positions(splits_.train, batch.items);
  return {torch::nn::functional::cross_entropy(logits(items), classes(items)),
          static_cast<int64_t>(items.size())};
}

namespace {

// What is known of a batch before its items: kSums numbers, then the counts of the derived task, then
// three numbers for each item.
enum : size_t { kLoss, kClasses, kHit, kKnown, kWeights, kZeros, kSums };
constexpr size_t kItemNumbers =
    3;  // predicted class, true class, score of the second of two classes

// What an accuracy is to be compared with, where classes are not nearly even or it is no better; and
// classes that F1 leaves out.
std::vector<std::string> notes_on_classes(const std::vector<int64_t>& predicted,
                                          const std::vector<int64_t>& truth, double accuracy,
                                          size_t classes) {
  std::map<int64_t, size_t> counts;
  for (const int64_t one : truth) ++counts[one];
  size_t most = 0;
  for (const auto& [one, count] : counts) most = std::max(most, count);
  const double share = static_cast<double>(most) / static_cast<double>(truth.size());
  std::vector<std::string> out;
  constexpr double kUneven = 1.25;  // of the share that each of even classes has
  if (counts.size() > 1 &&
      (share >= kUneven / static_cast<double>(counts.size()) || accuracy <= share))
    out.push_back(
        fmt::format("accuracy of always answering the most frequent class: {:.6g}", share));
  for (const int64_t one : predicted) ++counts[one];
  if (counts.size() < classes)
    out.push_back(
        fmt::format("f1: the mean over {} of {} classes; the others have no item and no answer",
                    counts.size(), classes));
  return out;
}

}  // namespace

std::vector<double> ClassificationTask::judged_batch(const std::vector<int64_t>& items) {
  train::stop_if_interrupted("while judging");
  const std::vector<double> before = counted();
  weights_seen_ = zeros_seen_ = 0;
  std::vector<double> out(kSums, 0.0);
  const torch::Tensor scores = train::finite(logits(items), "logits").to(torch::kFloat64);
  const torch::Tensor labels = classes(items);
  out[kLoss] =
      torch::nn::functional::cross_entropy(
          scores, labels, torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum))
          .item<double>();
  out[kClasses] = static_cast<double>(scores.size(1));
  for (const int one : hits(items)) {
    out[kHit] += one > 0;
    out[kKnown] += one >= 0;
  }
  out[kWeights] = weights_seen_;
  out[kZeros] = zeros_seen_;
  const std::vector<double> after = counted();
  for (size_t i = 0; i < after.size(); ++i) out.push_back(after[i] - before[i]);
  const torch::Tensor best = scores.argmax(1).cpu(), true_class = labels.cpu();
  const torch::Tensor second =
      (scores.size(1) == 2 ? scores.select(1, 1) - scores.select(1, 0) : scores.select(1, 0)).cpu();
  for (int64_t i = 0; i < best.size(0); ++i) {
    out.push_back(static_cast<double>(best[i].item<int64_t>()));
    out.push_back(static_cast<double>(true_class[i].item<int64_t>()));
    out.push_back(second[i].item<double>());
  }
  return out;
}

Evaluation ClassificationTask::evaluate(Split split) {
  const std::vector<int64_t>& all = splits_.of(split);
  std::vector<int64_t> lengths;
  if (!lengths_.empty())
    for (const int64_t item : all) lengths.push_back(lengths_[static_cast<size_t>(item)]);
  // Evaluation keeps nothing for a backward pass, so it takes four batches at once.
  const train::Recipe recipe = train::recipe_of(run_options_.options);
  const auto batches =
      data::ordered_batches(static_cast<int64_t>(all.size()), lengths,
                            {.items = 4 * recipe.batch, .tokens = 4 * recipe.batch_tokens});
  std::vector<double> counts = counted();
  const auto found = train::shared_work(
      run_options_.ranks, batches.size(),
      [&](size_t i) { return judged_batch(at_positions(all, batches[i])); }, "an evaluation");
  std::vector<int64_t> predicted, truth;
  std::vector<double> positive;
  std::array<double, kSums> sums{};
  for (const std::vector<double>& batch : found) {
    for (const size_t i : {kLoss, kHit, kKnown, kWeights, kZeros}) sums[i] += batch[i];
    sums[kClasses] = batch[kClasses];
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += batch[kSums + i];
    for (size_t i = kSums + counts.size(); i < batch.size(); i += kItemNumbers) {
      predicted.push_back(static_cast<int64_t>(batch[i]));
      truth.push_back(static_cast<int64_t>(batch[i + 1]));
      positive.push_back(batch[i + 2]);
    }
  }
  set_counted(counts);
  Evaluation out;
  out.items = static_cast<int64_t>(truth.size());
  if (truth.empty()) {
    out.notes.push_back("no items to evaluate, so no figures");
    return out;
  }
  const double accuracy = metrics::accuracy(predicted, truth);
  out.metrics = {{"loss", sums[kLoss] / static_cast<double>(truth.size())},
                 {"accuracy", accuracy},
                 {"error", 1 - accuracy},
                 {"f1", metrics::macro_f1(predicted, truth)}};
  if (sums[kClasses] == 2) {
    if (const auto area = metrics::auc(positive, truth))
      out.metrics["auc"] = *area;
    else
      out.notes.push_back("auc: undefined, all items are of one class");
  }
  for (std::string& note :
       notes_on_classes(predicted, truth, accuracy, static_cast<size_t>(sums[kClasses])))
    out.notes.push_back(std::move(note));
  if (sums[kKnown] > 0) out.attention["hit_rate"] = sums[kHit] / sums[kKnown];
  if (sums[kWeights] > 0) out.attention["zeros"] = sums[kZeros] / sums[kWeights];
  return out;
}

}  // namespace fovea
