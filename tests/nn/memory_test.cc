// nn::Memory: hops, tying, encodings, and what a story may be.
#include "fovea/nn/memory.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "tests/nn/differences.h"

namespace fovea::nn {
namespace {

at::Tensor ints(const std::vector<int32_t>& values) { return torch::tensor(values, torch::kInt32); }
at::Tensor longs(const std::vector<int64_t>& values) {
  return torch::tensor(values, torch::kInt64);
}

// Three stories of 3, 0 and 2 lines; the second line of the first has no words.
Stories three() {
  return {.words = longs({1, 2, 3, 4, 5, 2, 6, 1}),
          .lines = ints({0, 3, 3, 5, 7, 8}),
          .stories = ints({0, 3, 3, 5}),
          .question_words = longs({2, 3, 4, 5, 6, 1}),
          .question_bounds = ints({0, 2, 3, 6})};
}

MemoryOptions small(Tying tying, int64_t hops) {
  return {.words = 7, .width = 4, .hops = hops, .slots = 3, .tying = tying, .deviation = 0.5};
}

at::Tensor parameter(Memory& memory, const std::string& name) {
  return memory->named_parameters()[name];
}

// The equations as they stand, one story at a time, in loops.
at::Tensor by_hand(Memory& memory, const std::vector<std::vector<int64_t>>& lines,
                   const std::vector<int64_t>& question) {
  const MemoryOptions& o = memory->options();
  const bool adjacent = o.tying == Tying::kAdjacent;
  const at::Tensor all = parameter(memory, "line_weight"), time = parameter(memory, "time_weight");
  const auto encode = [&](const std::vector<int64_t>& words, const at::Tensor& weight) {
    at::Tensor sum = torch::zeros({o.width}, weight.options());
    const bool fixed = o.encoding == LineEncoding::kFixed;
    const auto count = static_cast<double>(fixed ? o.longest + 1 : int64_t(words.size()));
    for (size_t j = 1; j <= words.size(); ++j)
      for (int64_t c = 1; c <= o.width; ++c) {
        const double place = static_cast<double>(j) / count,
                     column = static_cast<double>(c) / static_cast<double>(o.width);
        const double around = 1 + 4 * (column - 0.5 - 0.5 / static_cast<double>(o.width)) *
                                      (place - 0.5 - 0.5 / count),
                     factor = fixed || o.encoding == LineEncoding::kCentred
                                  ? around
                                  : (1 - place) - column * (1 - 2 * place);
        sum[c - 1] += factor * weight[words[j - 1]][c - 1];
      }
    return sum;
  };
  // kFixed: the time is word J.
  const auto time_of = [&](const at::Tensor& row) {
    if (o.encoding != LineEncoding::kFixed) return row;
    at::Tensor out = row.clone();
    const auto count = static_cast<double>(o.longest + 1), d = static_cast<double>(o.width);
    for (int64_t c = 1; c <= o.width; ++c)
      out[c - 1] *= 1 + 4 * (static_cast<double>(c) / d - 0.5 - 0.5 / d) * (0.5 - 0.5 / count);
    return out;
  };
  const auto block = [&](const at::Tensor& weight, int64_t k) {
    return weight.narrow(1, k * o.width, o.width);
  };
  at::Tensor u = encode(question, adjacent ? block(all, 0) : parameter(memory, "question_weight"));
  for (int64_t hop = 0; hop < o.hops; ++hop) {
    std::vector<at::Tensor> m, c;
    for (size_t i = 0; i < lines.size(); ++i) {
      const auto age = static_cast<int64_t>(lines.size() - 1 - i);
      const int64_t a = adjacent ? hop : 0;
      m.push_back(encode(lines[i], block(all, a)) + time_of(block(time, a)[age]));
      c.push_back(encode(lines[i], block(all, a + 1)) + time_of(block(time, a + 1)[age]));
    }
    at::Tensor o_k = torch::zeros_like(u);
    if (!lines.empty()) o_k = torch::stack(m).mv(u).softmax(0).matmul(torch::stack(c));
    u = (adjacent ? u : parameter(memory, "hop.weight").mv(u)) + o_k;
  }
  return (adjacent ? block(all, o.hops) : parameter(memory, "answer_weight")).mv(u);
}

TEST(Memory, FollowsTheEquationsForTyingsAndPositions) {
  for (const auto& [tying, encoding] : {std::pair(Tying::kAdjacent, LineEncoding::kPosition),
                                        {Tying::kLayerWise, LineEncoding::kPosition},
                                        {Tying::kAdjacent, LineEncoding::kCentred},
                                        {Tying::kAdjacent, LineEncoding::kFixed}}) {
    torch::manual_seed(1);
    MemoryOptions options = small(tying, 3);
    options.encoding = encoding;
    options.longest = 3;
    Memory memory(options);
    memory->to(torch::kFloat64);
    const at::Tensor out = memory->forward(three());
    const at::Tensor expected =
        torch::stack({by_hand(memory, {{1, 2, 3}, {}, {4, 5}}, {2, 3}), by_hand(memory, {}, {4}),
                      by_hand(memory, {{2, 6}, {1}}, {5, 6, 1})});
    EXPECT_TRUE(torch::allclose(out, expected, 1e-12, 1e-12)) << out - expected;
  }
}

// Slots 1 and 2 of the last story hold lines, slot 3 is empty; the second story has none.
TEST(Memory, WeighedEmptySlotsAreRowsOfZeros) {
  torch::manual_seed(7);
  MemoryOptions options = small(Tying::kAdjacent, 1);
  options.empty_slots = EmptySlots::kWeighed;
  Memory memory(options);
  const Recall recall = memory->recall(three());
  const Hop& hop = recall.hops.at(0);
  const at::Tensor u = hop.query.squeeze(1), key = hop.key.squeeze(1), value = hop.value.squeeze(1);
  const auto padded = [](const at::Tensor& rows) {
    return at::constant_pad_nd(rows, {0, 0, 0, 3 - rows.size(0)});
  };
  const auto read = [&](int64_t story, int64_t from, int64_t to) {
    return padded(key.slice(0, from, to))
        .mv(u[story])
        .softmax(0)
        .matmul(padded(value.slice(0, from, to)));
  };
  EXPECT_TRUE(torch::allclose(recall.state[0], u[0] + read(0, 0, 3), 1e-5, 1e-6))
      << "none is empty";
  EXPECT_TRUE(torch::allclose(recall.state[2], u[2] + read(2, 3, 5), 1e-5, 1e-6));
  EXPECT_TRUE(torch::equal(recall.state[1], u[1])) << "an empty story adds nothing";
  recall.state.sum().backward();
  EXPECT_TRUE(parameter(memory, "line_weight").grad().isfinite().all().item<bool>());
  options.slots = 0;
  EXPECT_THROW(Memory{options}, InvalidArgument);
}

TEST(Memory, OneHopIsUnscaledDotProductAttentionWithOneQuery) {
  torch::manual_seed(2);
  Memory memory(small(Tying::kAdjacent, 1));
  const Recall recall = memory->recall(three());
  const Hop& hop = recall.hops.at(0);
  const auto dense = [&](int64_t story, int64_t from, int64_t to) {
    const auto batch = [&](const at::Tensor& rows) { return rows.transpose(0, 1).unsqueeze(0); };
    return at::scaled_dot_product_attention(
               batch(hop.query.narrow(0, story, 1)), batch(hop.key.slice(0, from, to)),
               batch(hop.value.slice(0, from, to)), {}, 0, false, /*scale=*/1.0)
        .flatten();
  };
  const at::Tensor u = hop.query.squeeze(1);
  EXPECT_TRUE(torch::allclose(recall.state[0], u[0] + dense(0, 0, 3), 1e-5, 1e-6));
  EXPECT_TRUE(torch::allclose(recall.state[2], u[2] + dense(2, 3, 5), 1e-5, 1e-6));
  EXPECT_TRUE(torch::equal(recall.state[1], u[1])) << "an empty story adds nothing";
}

TEST(Memory, GradientsAgreeWithFiniteDifferences) {
  for (const Tying tying : {Tying::kAdjacent, Tying::kLayerWise}) {
    torch::manual_seed(3);
    Memory memory(small(tying, 3));
    memory->to(torch::kFloat64);
    const at::Tensor cotangent = torch::randn({3, 7}, torch::kFloat64);
    const auto value = [&] { return (memory->forward(three()) * cotangent).sum(); };
    test::expect_gradients_of_differences(value, *memory, {.each = 12});
  }
}

TEST(Memory, NoWordAddsNothingAndKeepsItsPlace) {
  torch::manual_seed(4);
  Memory memory(small(Tying::kAdjacent, 2));
  Stories with = three();
  with.words[1] = 0;
  const at::Tensor key = memory->recall(with).hops[0].key[0].flatten();
  const at::Tensor weight = parameter(memory, "line_weight").narrow(1, 0, 4);
  const auto l = [](int64_t j, int64_t c) {
    return (1 - static_cast<double>(j) / 3) -
           (static_cast<double>(c) / 4) * (1 - 2.0 * static_cast<double>(j) / 3);
  };
  for (int64_t c = 1; c <= 4; ++c)
    EXPECT_NEAR(key[c - 1].item<double>(),
                l(1, c) * weight[1][c - 1].item<double>() +
                    l(3, c) * weight[3][c - 1].item<double>() +
                    parameter(memory, "time_weight")[2][c - 1].item<double>(),
                1e-6);
  EXPECT_EQ(weight[0].abs().sum().item<double>(), 0);
}

TEST(Memory, ABagOfWordsForgetsTheirOrder) {
  torch::manual_seed(5);
  MemoryOptions options = small(Tying::kAdjacent, 1);
  options.slots = 0;
  const auto key = [&](LineEncoding encoding, const std::vector<int64_t>& words) {
    torch::manual_seed(6);
    options.encoding = encoding;
    Memory memory(options);
    return memory->recall({longs(words), ints({0, 2}), ints({0, 1}), longs({1}), ints({0, 1})})
        .hops[0]
        .key;
  };
  EXPECT_TRUE(torch::equal(key(LineEncoding::kBag, {1, 2}), key(LineEncoding::kBag, {2, 1})));
  EXPECT_FALSE(
      torch::allclose(key(LineEncoding::kPosition, {1, 2}), key(LineEncoding::kPosition, {2, 1})));
}

TEST(Memory, MistakesAreNamed) {
  Memory memory(small(Tying::kAdjacent, 1));
  const auto said = [&](const Stories& stories) -> std::string {
    try {
      memory->forward(stories);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "nothing";
  };
  Stories stories = three();
  stories.lines = ints({0, 1, 2, 3, 4, 8});
  stories.stories = ints({0, 4, 5, 5});
  EXPECT_EQ(said(stories), "stories: 4 lines, expected at most 3 (slots)");
  stories = three();
  stories.lines = ints({0, 3, 3, 5, 7, 9});
  EXPECT_EQ(said(stories), "lines: the last bound is 9, expected 8");
  stories = three();
  stories.question_bounds = ints({0, 6});
  EXPECT_EQ(said(stories), "question_bounds: 1 questions, expected 3, one for each story");
  EXPECT_THROW(Memory(MemoryOptions{.words = 3}), InvalidArgument);
}

// Times fall from line to line, stay within the slots, and are the plain ones without noise.
TEST(PackStories, GapsPassOverTimesAndAddNoLines) {
  const std::vector<std::vector<int64_t>> lines(20, {1});
  const std::vector<Asked> asked(50, {lines, {2}});
  const Remembering how{.slots = 21, .noise = 0.1, .kind = Noise::kGaps, .seed = 3};
  const Stories packed = pack_stories(asked, how).stories;
  ASSERT_EQ(packed.ages.size(0), 50 * 20);
  EXPECT_EQ(packed.lines.size(0), 50 * 20 + 1);
  const at::Tensor ages = packed.ages.view({50, 20}),
                   fall = ages.slice(1, 0, 19) - ages.slice(1, 1);
  EXPECT_EQ(ages.max().item<int64_t>(), 20);
  EXPECT_EQ(ages.min().item<int64_t>(), 0);
  EXPECT_GE(fall.slice(1, 1).min().item<int64_t>(), 1)
      << "but for the oldest, which may share a slot";
  EXPECT_LE(fall.max().item<int64_t>(), 3) << "two gaps at most";
  EXPECT_GT((fall > 1).sum().item<int64_t>(), 10);
  EXPECT_FALSE(pack_stories(asked, {.slots = 21, .kind = Noise::kGaps}).stories.ages.defined());
}

TEST(PackStories, TheNewestLinesStayAndSupportMovesWithThem) {
  const std::vector<std::vector<int64_t>> lines = {{1}, {2, 3}, {4}, {5}};
  const std::vector<int64_t> support = {0, 2};
  const std::vector<Asked> asked = {{lines, {6}, support}, {{}, {1, 2}, {}}};
  const Remembered kept = pack_stories(asked, {.slots = 3});
  EXPECT_TRUE(torch::equal(kept.stories.words, longs({2, 3, 4, 5})));
  EXPECT_TRUE(torch::equal(kept.stories.lines, ints({0, 2, 3, 4})));
  EXPECT_TRUE(torch::equal(kept.stories.stories, ints({0, 3, 3})));
  EXPECT_EQ(kept.support[0], std::vector<int64_t>{1});
  EXPECT_EQ(kept.forgotten, (std::vector<int64_t>{1, 0}));
}

// An empty line takes a slot and a time: what is older than it is one step older.
TEST(PackStories, NoiseShiftsTimesAndSupportAlike) {
  const std::vector<std::vector<int64_t>> lines(20, {1, 2});
  const std::vector<int64_t> support = {3, 19};
  const std::vector<Asked> asked = {{lines, {3}, support}};
  int64_t longest = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Remembered noisy = pack_stories(asked, {.slots = 40, .noise = 0.2, .seed = seed});
    const int64_t slots = noisy.stories.lines.size(0) - 1;
    longest = std::max(longest, slots);
    EXPECT_EQ(noisy.stories.words.size(0), 40) << "empty lines have no words";
    EXPECT_EQ(noisy.support[0].back(), slots - 1);
    const auto at = noisy.support[0].front();
    EXPECT_EQ((noisy.stories.lines[at + 1] - noisy.stories.lines[at]).item<int>(), 2);
    EXPECT_EQ(noisy.stories.lines[at].item<int>(), 2 * 3) << "three lines of words come before";
    const Remembered again = pack_stories(asked, {.slots = 40, .noise = 0.2, .seed = seed});
    EXPECT_TRUE(torch::equal(again.stories.lines, noisy.stories.lines));
    EXPECT_LE(pack_stories(asked, {.slots = 10, .noise = 0.2, .seed = seed}).stories.lines.size(0),
              11);
  }
  EXPECT_GT(longest, 20);
}

TEST(Memory, ACloneIsItsOwn) {
  Memory memory(small(Tying::kLayerWise, 2));
  const auto copy = std::dynamic_pointer_cast<MemoryImpl>(memory->clone());
  EXPECT_TRUE(torch::equal(memory->forward(three()), copy->forward(three())));
  const torch::NoGradGuard guard;
  parameter(memory, "answer_weight").add_(1);
  EXPECT_FALSE(torch::allclose(memory->forward(three()), copy->forward(three())));
}

}  // namespace
}  // namespace fovea::nn
