// What the frame costs: an epoch through `train` beside a hand-written libtorch loop of the same
// model.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "train/descent/fit.h"
#include "train/descent/optimiser.h"
#include "train/task.h"

namespace fovea {
namespace {

using Clock = std::chrono::steady_clock;
constexpr int64_t kItems = 4096, kBatch = 32, kEpochs = 3;

torch::nn::Sequential small_model() {
  torch::manual_seed(5);
  return torch::nn::Sequential(torch::nn::Linear(32, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 64), torch::nn::ReLU(),
                               torch::nn::Linear(64, 10));
}

struct Data {
  torch::Tensor x = torch::randn({kItems, 32}), y = torch::randint(10, {kItems});
};

class Small : public GradientTask {
 public:
  explicit Small(const Data& data) : data_(data) {}
  void read(const Source&) override {}
  std::shared_ptr<torch::nn::Module> build() override { return (model_ = small_model()).ptr(); }
  int64_t items(Split split) const override { return split == Split::kTrain ? kItems : 0; }
  Loss loss(const Batch& batch) override {
    const torch::Tensor at =
        torch::from_blob(const_cast<int64_t*>(batch.items.data()),
                         {static_cast<int64_t>(batch.items.size())}, torch::kInt64);
    return {torch::nn::functional::cross_entropy(model_->forward(data_.x.index_select(0, at)),
                                                 data_.y.index_select(0, at)),
            at.size(0)};
  }
  Evaluation evaluate(Split) override { return {}; }
  void predict(Input, std::ostream&) override {}
  std::vector<explain::Explanation> explain(Input*) override { return {}; }

 private:
  const Data& data_;
  torch::nn::Sequential model_;
};

double by_hand(const Data& data) {
  torch::nn::Sequential model = small_model();
  torch::optim::Adam optimiser(model->parameters(), torch::optim::AdamOptions(1e-3));
  const auto start = Clock::now();
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    const torch::Tensor order = torch::randperm(kItems);
    double sum = 0;
    for (int64_t from = 0; from < kItems; from += kBatch) {
      const torch::Tensor at = order.slice(0, from, from + kBatch);
      optimiser.zero_grad();
      const torch::Tensor loss = torch::nn::functional::cross_entropy(
          model->forward(data.x.index_select(0, at)), data.y.index_select(0, at));
      loss.backward();
      optimiser.step();
      sum += loss.item<double>();
    }
    EXPECT_GT(sum, 0);
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double by_frame(const Data& data, const std::filesystem::path& folder) {
  OptionValues option_values(
      train::options_of({.epochs = kEpochs, .batch = kBatch, .optimiser = "adam", .rate = 1e-3}));
  const RunOptions run_options{option_values, 1, torch::kCPU};
  Small task(data);
  const auto model = task.build();
  train::Draft draft(folder);
  draft.begin();
  train::Progress silent(train::Progress::Style::kSilent);
  train::Fit fit(run_options, model, draft, "configuration", silent);
  const auto start = Clock::now();
  task.fit(fit);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

TEST(FrameCost, AnEpochCostsAtMostATenthMore) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "fovea_frame_cost";
  at::set_num_threads(1);
  const Data data;
  // The best of interleaved rounds: other work on the machine can only add time. A round that was
  // disturbed is repeated.
  double ours = 1e9, theirs = 1e9;
  for (int round = 0; round < 12 && (round < 4 || ours > 1.1 * theirs); ++round) {
    theirs = std::min(theirs, by_hand(data));
    ours = std::min(ours, by_frame(data, folder));
  }
  std::filesystem::remove_all(folder);
  std::printf("an epoch by hand %.1f ms, through the frame %.1f ms: %.3f x\n",
              1e3 * theirs / kEpochs, 1e3 * ours / kEpochs, ours / theirs);
  EXPECT_LE(ours, 1.1 * theirs);
}

}  // namespace
}  // namespace fovea
