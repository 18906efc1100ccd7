// Hierarchical attention on ragged batches beside the same layers on padded ones, in eager
// libtorch: forward and backward, in turns.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "data/random.h"
#include "systems/hierarchical/model.h"

namespace fovea::systems {
namespace {

constexpr int64_t kWords = 20000, kWidth = 100, kHidden = 50, kContext = 100, kDocuments = 64,
                  kLongest = 60;

struct PaddedLevel : torch::nn::Module {
  explicit PaddedLevel(int64_t input)
      : gru(register_module(
            "gru",
            torch::nn::GRU(
                torch::nn::GRUOptions(input, kHidden).bidirectional(true).batch_first(true)))),
        project(register_module("project", torch::nn::Linear(2 * kHidden, kContext))),
        context(register_parameter("context", torch::randn({kContext}) * 0.1)) {}
  // x [sequences, longest, input], keep bool [sequences, longest]
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& keep) {
    const torch::Tensor h = std::get<0>(gru(x));
    const torch::Tensor e =
        torch::tanh(project(h)).matmul(context).masked_fill(keep.logical_not(), -1e9);
    return (e.softmax(1).unsqueeze(2) * h).sum(1);
  }
  torch::nn::GRU gru;
  torch::nn::Linear project;
  torch::Tensor context;
};

struct Padded : torch::nn::Module {
  Padded()
      : embedding(register_module("embedding", torch::nn::Embedding(kWords, kWidth))),
        words(register_module("words", std::make_shared<PaddedLevel>(kWidth))),
        sentences(register_module("sentences", std::make_shared<PaddedLevel>(2 * kHidden))),
        output(register_module("output", torch::nn::Linear(2 * kHidden, 2))) {}
  torch::Tensor forward(const torch::Tensor& ids) {  // [documents, sentences, words], 0 is padding
    const torch::Tensor s = words->forward(embedding(ids.flatten(0, 1)), ids.flatten(0, 1) > 0)
                                .view({ids.size(0), ids.size(1), -1});
    return output(sentences->forward(s, (ids > 0).any(2)));
  }
  torch::nn::Embedding embedding;
  std::shared_ptr<PaddedLevel> words, sentences;
  torch::nn::Linear output;
};

// Reviews of about the same length, as a batch of like lengths holds them: 230 words in sentences
// of 3 to 60, 20 on the mean.
std::vector<std::vector<std::vector<int64_t>>> reviews() {
  data::Random random(7);
  std::vector<std::vector<std::vector<int64_t>>> out(kDocuments);
  for (auto& document : out) {
    for (int64_t left = 220 + static_cast<int64_t>(random.below(20)); left > 0;) {
      const double drawn = std::exp(2.8 + 0.6 * random.normal());
      const int64_t length =
          std::min<int64_t>(left, std::clamp<int64_t>(static_cast<int64_t>(drawn), 3, kLongest));
      auto& sentence = document.emplace_back();
      for (int64_t i = 0; i < length; ++i)
        sentence.push_back(4 + static_cast<int64_t>(random.below(kWords - 4)));
      left -= length;
    }
  }
  return out;
}

TEST(HierarchicalSpeed, TwiceThePaddedModel) {
  torch::manual_seed(1);
  const auto documents = reviews();
  std::vector<int64_t> words;
  std::vector<int32_t> sentences = {0}, bounds = {0};
  size_t most_sentences = 0, most_words = 0;
  for (const auto& document : documents) {
    for (const auto& sentence : document) {
      words.insert(words.end(), sentence.begin(), sentence.end());
      sentences.push_back(static_cast<int32_t>(words.size()));
      most_words = std::max(most_words, sentence.size());
    }
    most_sentences = std::max(most_sentences, document.size());
    bounds.push_back(static_cast<int32_t>(sentences.size()) - 1);
  }
  const text::Batch ragged{
      torch::tensor(words, torch::kLong), torch::tensor(sentences, torch::kInt),
      torch::tensor(bounds, torch::kInt), torch::zeros({kDocuments}, torch::kLong)};
  torch::Tensor ids = torch::zeros(
      {kDocuments, static_cast<int64_t>(most_sentences), static_cast<int64_t>(most_words)},
      torch::kLong);
  for (size_t d = 0; d < documents.size(); ++d)
    for (size_t s = 0; s < documents[d].size(); ++s)
      ids[static_cast<int64_t>(d)][static_cast<int64_t>(s)].slice(
          0, 0, static_cast<int64_t>(documents[d][s].size())) =
          torch::tensor(documents[d][s], torch::kLong);

  HierarchicalModel ours(
      {.embedding = {.words = kWords, .width = kWidth}, .width = kHidden, .context = kContext});
  Padded padded;
  const auto seconds = [](auto&& logits) {
    const auto start = std::chrono::steady_clock::now();
    logits().square().sum().backward();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const auto run_ours = [&] { return seconds([&] { return ours.logits(ragged); }); };
  const auto run_padded = [&] { return seconds([&] { return padded.forward(ids); }); };
  run_ours(), run_padded();
  std::vector<double> a, b;
  for (int i = 0; i < 5; ++i) a.push_back(run_ours()), b.push_back(run_padded());
  std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
  const double ratio = b[2] / a[2],
               filled = static_cast<double>(words.size()) / static_cast<double>(ids.numel());
  std::printf(
      "ragged %.0f ms, padded %.0f ms for %zu words of %lld places (%.0f %% filled): %.1f x; %.0f "
      "words/s on %d threads\n",
      1e3 * a[2], 1e3 * b[2], words.size(), static_cast<long long>(ids.numel()), 100 * filled,
      ratio, static_cast<double>(words.size()) / a[2], at::get_num_threads());
  RecordProperty("ratio", std::to_string(ratio));
  EXPECT_GE(ratio, 2.0);
}

}  // namespace
}  // namespace fovea::systems
