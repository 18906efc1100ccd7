// A training step of show-attend-tell beside the same decoder in eager libtorch, word by word: forward and
// backward, in turns.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>

#include "systems/show_attend_tell/losses.h"
#include "systems/show_attend_tell/model.h"
#include "tests/systems/slow/in_turns.h"

namespace fovea::systems::show_attend_tell {
namespace {

using fovea::test::medians;
using torch::nn::Linear;
using torch::nn::LinearOptions;

constexpr int64_t kBatch = 64, kRegions = 49, kNumbers = 64, kSteps = 12, kWords = 2549;
constexpr int64_t kEmbedding = 256, kWidth = 512, kAttention = 512;

// As it is usually written: at each word attention by broadcasting, a cell, and the words' scores.
struct Eager : torch::nn::Module {
  Eager() {
    words = register_module("words", torch::nn::Embedding(kWords, kEmbedding));
    start_hidden = register_module("start_hidden", Linear(kNumbers, kWidth));
    start_cell = register_module("start_cell", Linear(kNumbers, kWidth));
    key = register_module("key", Linear(LinearOptions(kNumbers, kAttention).bias(false)));
    query = register_module("query", Linear(kWidth, kAttention));
    score = register_module("score", Linear(LinearOptions(kAttention, 1).bias(false)));
    gate = register_module("gate", Linear(kWidth, 1));
    cell = register_module("cell", torch::nn::LSTMCell(kEmbedding + kNumbers, kWidth));
    out_hidden = register_module("out_hidden", Linear(kWidth, kEmbedding));
    out_context =
        register_module("out_context", Linear(LinearOptions(kNumbers, kEmbedding).bias(false)));
    out = register_module("out", Linear(kEmbedding, kWords));
  }
  torch::Tensor forward(const torch::Tensor& a, const torch::Tensor& ids,
                        const torch::Tensor& targets) {
    const torch::Tensor keys = key(a), mean = a.mean(1), embedded = words(ids);
    torch::Tensor h = torch::tanh(start_hidden(mean)), c = torch::tanh(start_cell(mean));
    std::vector<torch::Tensor> logits;
    torch::Tensor seen = torch::zeros({a.size(0), a.size(1)});
    for (int64_t t = 0; t < ids.size(1); ++t) {
      const torch::Tensor alpha =
          score(torch::tanh(keys + query(h).unsqueeze(1))).squeeze(2).softmax(1);
      const torch::Tensor z = torch::sigmoid(gate(h)) * (alpha.unsqueeze(2) * a).sum(1);
      const torch::Tensor y = embedded.select(1, t);
      std::tie(h, c) = cell(torch::cat({y, z}, 1), std::tuple(h, c));
      logits.push_back(out(y + out_hidden(h) + out_context(z)));
      seen = seen + alpha;
    }
    const torch::Tensor all = torch::stack(logits, 1).flatten(0, 1);
    return torch::nn::functional::cross_entropy(all, targets) +
           (1 - seen).square().sum() / static_cast<double>(targets.size(0));
  }
  torch::nn::Embedding words{nullptr};
  Linear start_hidden{nullptr}, start_cell{nullptr}, key{nullptr}, query{nullptr}, score{nullptr},
      gate{nullptr}, out_hidden{nullptr}, out_context{nullptr}, out{nullptr};
  torch::nn::LSTMCell cell{nullptr};
};

TEST(CaptionsSpeed, AStepTakesHalfAsLongAsEager) {
  torch::manual_seed(1);
  Model ours(
      {.words = kWords,
       .regions = {.side = 0, .grid = 7, .channels = 0, .array_width = kNumbers, .count = kRegions},
       .embedding = kEmbedding,
       .width = kWidth,
       .attention = kAttention});
  Eager eager;
  const torch::Tensor regions = torch::randn({kBatch, kRegions, kNumbers}),
                      words = torch::randint(4, kWords, {kBatch, kSteps}, torch::kLong),
                      targets = torch::randint(4, kWords, {kBatch * kSteps}, torch::kLong),
                      real = torch::ones({kBatch, kSteps}, torch::kBool);
  const std::vector<double> taken =
      medians({[&] {
                 return losses(ours, ours.tell(ours.see(regions), words, real), targets, real,
                               {.coverage = 1})
                     .total;
               },
               [&] { return eager.forward(regions, words, targets); }},
              9);
  std::printf(
      "show-attend-tell, %lld captions of %lld words, 49 regions: ours %.1f ms, eager %.1f ms, "
      "%.2f x as long; %d threads\n",
      static_cast<long long>(kBatch), static_cast<long long>(kSteps), taken[0] * 1e3,
      taken[1] * 1e3, taken[1] / taken[0], at::get_num_threads());
  EXPECT_GE(taken[1] / taken[0], 1.5);
}

}  // namespace
}  // namespace fovea::systems::show_attend_tell
