#include "systems/relative_positions/sequence_task.h"

#include <cmath>

#include "data/batches.h"
#include "train/descent/finite.h"
#include "train/descent/recipe.h"
#include "train/interrupt.h"

namespace fovea::systems::relative_positions {
namespace {

namespace F = torch::nn::functional;

constexpr size_t kLookedAt = 50;  // sequences that judge where the heads look
constexpr int64_t kRowsOfOne = 64;

torch::Tensor cross_entropy(const torch::Tensor& scores, const torch::Tensor& targets) {
  return F::cross_entropy(
      scores.flatten(0, 1), targets.flatten(),
      F::CrossEntropyFuncOptions().ignore_index(kNoTarget).reduction(torch::kSum));
}

}  // namespace

std::shared_ptr<torch::nn::Module> SequenceTask::build() {
  return model_ = std::make_shared<SequenceModel>(
             SequenceConfig{.vocabulary = vocabulary(),
                            .width = options_.integer("width"),
                            .heads = options_.integer("heads"),
                            .hidden = options_.integer("hidden"),
                            .layers = options_.integer("layers"),
                            .clip = clip(),
                            .positions = kPositionNames.of(options_.text("positions")),
                            .dropout = options_.number("dropout")});
}

std::vector<int64_t> SequenceTask::lengths() const {
  std::vector<int64_t> out;
  for (const Sequence& one : of(Split::kTrain))
    out.push_back(static_cast<int64_t>(one.inputs.size()));
  return out;
}

torch::Tensor SequenceTask::tensor_of(const std::vector<int64_t>& tokens) const {
  return torch::tensor(tokens, torch::kLong).unsqueeze(0).to(run_options_.device);
}

SequenceTask::Padded SequenceTask::padded(const std::vector<Sequence>& from,
                                          std::span<const int64_t> items) const {
  size_t longest = 1;
  for (const int64_t i : items)
    longest = std::max(longest, from[static_cast<size_t>(i)].inputs.size());
  const auto rows = static_cast<int64_t>(items.size()), width = static_cast<int64_t>(longest);
  // The model is causal: what stands after a sequence is seen by none of it.
  Padded out{torch::zeros({rows, width}, torch::kLong),
             torch::full({rows, width}, kNoTarget, torch::kLong)};
  for (int64_t b = 0; b < rows; ++b) {
    const Sequence& one = from[static_cast<size_t>(items[static_cast<size_t>(b)])];
    std::copy(one.inputs.begin(), one.inputs.end(), out.inputs.data_ptr<int64_t>() + b * width);
    std::copy(one.targets.begin(), one.targets.end(), out.targets.data_ptr<int64_t>() + b * width);
  }
  out.count = out.targets.ne(kNoTarget).sum().item<int64_t>();
  out.inputs = out.inputs.to(run_options_.device);
  out.targets = out.targets.to(run_options_.device);
  return out;
}

Loss SequenceTask::loss(const Batch& batch) {
  const Padded all = padded(of(Split::kTrain), batch.items);
  const int64_t count = std::max<int64_t>(all.count, 1);
  return {cross_entropy(model_->forward(all.inputs), all.targets) / static_cast<double>(count),
          count};
}

Evaluation SequenceTask::evaluate(Split split) {
  const torch::NoGradGuard no_grad;
  const std::vector<Sequence>& all = of(split);
  std::vector<int64_t> lengths;
  for (const Sequence& one : all) lengths.push_back(static_cast<int64_t>(one.inputs.size()));
  const train::Recipe recipe = train::recipe_of(options_);
  double loss = 0, right = 0, count = 0;
  for (const auto& items :
       data::ordered_batches(static_cast<int64_t>(all.size()), lengths,
                             {.items = 2 * recipe.batch, .tokens = 2 * recipe.batch_tokens})) {
    train::stop_if_interrupted("while judging");
    const Padded read = padded(all, items);
    const torch::Tensor scores = train::finite(model_->forward(read.inputs), "logits");
    loss += cross_entropy(scores.to(torch::kDouble), read.targets).item<double>();
    right += scores.argmax(-1).eq(read.targets).sum().item<double>();
    count += static_cast<double>(read.count);
  }
  Evaluation out;
  out.items = static_cast<int64_t>(all.size());
  if (count > 0) {
    out.metrics = {{"loss", loss / count},
                   {"perplexity", std::exp(loss / count)},
                   {"accuracy", right / count}};
  } else {
    out.notes.push_back("no token to judge");
  }
  // Nothing says which head should look: it is the one that most often does on validation items.
  const auto [chosen, known] = hits(of(Split::kValidation));
  const auto [found, judged] = hits(all);
  if (known > 0 && judged > 0)
    out.attention = {{"hit_rate", found.flatten()[chosen.flatten().argmax()].item<double>() /
                                      static_cast<double>(judged)}};
  return out;
}

std::pair<torch::Tensor, int64_t> SequenceTask::hits(const std::vector<Sequence>& from) {
  torch::Tensor out =
      torch::zeros({options_.integer("layers"), options_.integer("heads")}, torch::kLong);
  int64_t judged = 0;
  for (size_t i = 0; i < std::min(from.size(), kLookedAt); ++i) {
    std::vector<int64_t> rows, keys;
    for (size_t p = 0; p < from[i].deciding.size(); ++p)
      if (from[i].deciding[p] >= 0 && static_cast<int64_t>(rows.size()) < kRowsOfOne) {
        rows.push_back(static_cast<int64_t>(p));
        keys.push_back(from[i].deciding[p]);
      }
    if (rows.empty()) continue;
    const torch::Tensor weights =
        model_->weights(tensor_of(from[i].inputs), torch::tensor(rows, torch::kInt));
    out += weights.select(1, 0).argmax(-1).cpu().eq(torch::tensor(keys, torch::kLong)).sum(-1);
    judged += static_cast<int64_t>(rows.size());
  }
  return {out, judged};
}

}  // namespace fovea::systems::relative_positions
