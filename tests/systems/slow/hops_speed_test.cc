// Memory networks on ragged stories and stacked attention, each beside the same model in eager libtorch:
// forward and backward, in turns.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdio>
#include <limits>

#include "data/random.h"
#include "fovea/nn/memory.h"
#include "systems/stacked_attention/model.h"
#include "tests/systems/slow/in_turns.h"

namespace fovea::systems::hops {
namespace {

using fovea::test::medians;

constexpr int64_t kStories = 32, kWords = 180, kWidth = 50, kHops = 3, kSlots = 50;

// As bAbI's: 2 to 50 lines of 3 to 7 words, a question of 4.
struct Told {
  std::vector<std::vector<std::vector<int64_t>>> lines;
  std::vector<std::vector<int64_t>> questions;
};
Told told() {
  data::Random random(5);
  const auto words = [&](uint64_t count) {
    std::vector<int64_t> out;
    for (uint64_t i = 0; i < count; ++i)
      out.push_back(1 + static_cast<int64_t>(random.below(kWords - 1)));
    return out;
  };
  Told out;
  for (int64_t i = 0; i < kStories; ++i) {
    auto& story = out.lines.emplace_back();
    const uint64_t count = 2 + random.below(kSlots - 1);
    for (uint64_t line = 0; line < count; ++line) story.push_back(words(3 + random.below(5)));
    out.questions.push_back(words(4));
  }
  return out;
}

// Stories padded to the longest, lines to the longest line; adjacent tying.
struct PaddedMemory : torch::nn::Module {
  PaddedMemory() {
    for (int64_t i = 0; i <= kHops; ++i) {
      words.push_back(register_module(
          "words" + std::to_string(i),
          torch::nn::Embedding(torch::nn::EmbeddingOptions(kWords, kWidth).padding_idx(0))));
      times.push_back(
          register_parameter("times" + std::to_string(i), torch::randn({kSlots, kWidth}) * 0.1));
    }
  }
  // `factors` are l, of each word and number; age counts lines from the newest.
  torch::Tensor forward(const torch::Tensor& lines, const torch::Tensor& factors,
                        const torch::Tensor& age, const torch::Tensor& none,
                        const torch::Tensor& questions, const torch::Tensor& question_factors) {
    const auto told_by = [&](size_t i) {
      return (words[i](lines) * factors).sum(2) + times[i].index({age});
    };
    torch::Tensor u = (words[0](questions) * question_factors).sum(1), m = told_by(0);
    for (size_t hop = 0; hop < kHops; ++hop) {
      const torch::Tensor c = told_by(hop + 1);
      const torch::Tensor e = m.matmul(u.unsqueeze(2))
                                  .squeeze(2)
                                  .masked_fill(none, -std::numeric_limits<float>::infinity());
      u = u + e.softmax(1).unsqueeze(1).matmul(c).squeeze(1);
      m = c;
    }
    return u.matmul(words.back()->weight.t());
  }
  std::vector<torch::nn::Embedding> words;
  std::vector<torch::Tensor> times;
};

// l of a line of J words, then zeros: [longest, width].
torch::Tensor factors_of(int64_t count, int64_t longest) {
  torch::Tensor out = torch::zeros({longest, kWidth});
  const torch::Tensor j = torch::arange(1, count + 1).to(torch::kFloat32).unsqueeze(1) /
                          static_cast<double>(count),
                      c = torch::arange(1, kWidth + 1).to(torch::kFloat32) /
                          static_cast<double>(kWidth);
  out.narrow(0, 0, count).copy_((1 - j) - c * (1 - 2 * j));
  return out;
}

TEST(HopsSpeed, RaggedMemoriesAreFasterThanPaddedOnes) {
  torch::manual_seed(1);
  const Told stories = told();
  std::vector<nn::Asked> asked;
  int64_t longest = 0, widest = 7;
  for (size_t i = 0; i < stories.lines.size(); ++i) {
    asked.push_back({stories.lines[i], stories.questions[i], {}});
    longest = std::max(longest, static_cast<int64_t>(stories.lines[i].size()));
  }
  torch::Tensor lines = torch::zeros({kStories, longest, widest}, torch::kLong),
                factors = torch::zeros({kStories, longest, widest, kWidth}),
                age = torch::zeros({kStories, longest}, torch::kLong),
                none = torch::ones({kStories, longest}, torch::kBool),
                questions = torch::zeros({kStories, 4}, torch::kLong);
  for (int64_t i = 0; i < kStories; ++i) {
    const auto& story = stories.lines[static_cast<size_t>(i)];
    questions[i] = torch::tensor(stories.questions[static_cast<size_t>(i)], torch::kLong);
    for (int64_t line = 0; line < static_cast<int64_t>(story.size()); ++line) {
      const auto& words = story[static_cast<size_t>(line)];
      const auto count = static_cast<int64_t>(words.size());
      lines[i][line].narrow(0, 0, count).copy_(torch::tensor(words, torch::kLong));
      factors[i][line] = factors_of(count, widest);
      age[i][line] = static_cast<int64_t>(story.size()) - 1 - line;
      none[i][line] = false;
    }
  }
  nn::Memory ours(nn::MemoryOptions{.words = kWords, .width = kWidth, .hops = kHops});
  PaddedMemory padded;
  {  // the same weights: the same answers
    const torch::NoGradGuard guard;
    const auto p = ours->named_parameters();
    for (int64_t i = 0; i <= kHops; ++i) {
      const auto at = static_cast<size_t>(i);
      padded.words[at]->weight.copy_(p["line_weight"].narrow(1, i * kWidth, kWidth));
      padded.times[at].copy_(p["time_weight"].narrow(1, i * kWidth, kWidth));
    }
  }
  const torch::Tensor question_factors = factors_of(4, 4);
  const auto eager = [&] {
    return padded.forward(lines, factors, age, none, questions, question_factors);
  };
  // Both have their batch ready; theirs has the position weights in it, which ours computes.
  const nn::Stories packed = nn::pack_stories(asked, {.slots = kSlots}).stories;
  const auto ragged = [&] { return ours(packed); };
  EXPECT_TRUE(torch::allclose(ragged().slice(1, 1), eager().slice(1, 1), 1e-4, 1e-5));
  const std::vector<double> taken = medians({ragged, eager}, 21);
  std::printf(
      "memory-network, %lld stories of 2 to 50 lines: eager takes %.2f x as long; %d threads\n",
      static_cast<long long>(kStories), taken[1] / taken[0], at::get_num_threads());
  EXPECT_GE(taken[1] / taken[0], 1.5);
}

// The same network with hops written out.
struct EagerHops : torch::nn::Module {
  explicit EagerHops(const stacked_attention::Shape& s) {
    using torch::nn::Conv2dOptions;
    const int64_t cell = s.side / s.grid;
    conv1 = register_module("conv1",
                            torch::nn::Conv2d(Conv2dOptions(3, 32, cell / 2).stride(cell / 2)));
    conv2 = register_module("conv2", torch::nn::Conv2d(Conv2dOptions(32, 64, 2).stride(2)));
    region = register_module("region", torch::nn::Linear(66, s.width));
    words = register_module("words", torch::nn::Embedding(s.words, s.width));
    lstm = register_module(
        "lstm", torch::nn::LSTM(torch::nn::LSTMOptions(s.width, s.width).batch_first(true)));
    for (int64_t hop = 0; hop < s.hops; ++hop) {
      const std::string number = std::to_string(hop);
      of_region.push_back(register_module(
          "region" + number,
          torch::nn::Linear(torch::nn::LinearOptions(s.width, s.attention).bias(false))));
      of_state.push_back(
          register_module("state" + number, torch::nn::Linear(s.width, s.attention)));
      weight.push_back(register_parameter("weight" + number, torch::randn({s.attention}) * 0.1));
    }
    out = register_module("out", torch::nn::Linear(s.width, s.answers));
    const torch::Tensor step = torch::linspace(-3, 3, s.grid);
    places = torch::stack({step.repeat_interleave(s.grid), step.repeat({s.grid})}, 1);
  }
  torch::Tensor forward(const torch::Tensor& pictures, const torch::Tensor& ids,
                        const torch::Tensor& last) {
    const torch::Tensor f =
        torch::relu(conv2(torch::relu(conv1(pictures)))).flatten(2).transpose(1, 2);
    const torch::Tensor v =
        torch::tanh(region(torch::cat({f, places.expand({f.size(0), -1, -1})}, 2)));
    torch::Tensor u = std::get<0>(lstm(words(ids))).index({torch::arange(ids.size(0)), last});
    for (size_t hop = 0; hop < weight.size(); ++hop) {
      const torch::Tensor e =
          torch::tanh(of_region[hop](v) + of_state[hop](u).unsqueeze(1)).matmul(weight[hop]);
      u = (e.softmax(1).unsqueeze(2) * v).sum(1) + u;
    }
    return out(u);
  }
  torch::nn::Conv2d conv1{nullptr}, conv2{nullptr};
  torch::nn::Linear region{nullptr}, out{nullptr};
  torch::nn::Embedding words{nullptr};
  torch::nn::LSTM lstm{nullptr};
  std::vector<torch::nn::Linear> of_region, of_state;
  std::vector<torch::Tensor> weight;
  torch::Tensor places;
};

TEST(HopsSpeed, StackedAttentionCostsNoMoreThanEager) {
  torch::manual_seed(1);
  const stacked_attention::Shape shape{.words = 20, .answers = 5};
  stacked_attention::Model ours(shape);
  EagerHops eager(shape);
  const torch::Tensor pictures = torch::randn({64, 3, 32, 32}),
                      words = torch::randint(1, 20, {64, 8}, torch::kLong),
                      lengths = torch::randint(5, 9, {64}, torch::kLong);
  const std::vector<double> taken =
      medians({[&] { return ours.look(pictures, words, lengths).logits; },
               [&] { return eager.forward(pictures, words, lengths - 1); }},
              101);
  std::printf("stacked-attention, 64 pictures: eager takes %.2f x as long; %d threads\n",
              taken[1] / taken[0], at::get_num_threads());
  EXPECT_GE(taken[1] / taken[0], 1.0);
}

}  // namespace
}  // namespace fovea::systems::hops
