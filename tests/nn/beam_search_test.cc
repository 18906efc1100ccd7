#include "fovea/nn/beam_search.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "fovea/error.h"

namespace fovea::nn {
namespace {

constexpr int64_t kPad = 0, kBegin = 2, kEnd = 3, kVocabulary = 7;

// A model whose next token depends on the sentence and the last token only.
class Markov : public StepModel {
 public:
  Markov(int64_t sentences, uint64_t seed) {
    at::manual_seed(seed);
    table_ = at::log_softmax(2 * at::randn({sentences, kVocabulary, kVocabulary}, at::kDouble), -1);
    sentence_ = at::arange(sentences);
  }
  void select(const at::Tensor& rows) override { sentence_ = sentence_.index_select(0, rows); }
  StepOutput step(const at::Tensor& tokens) override {
    return {table_.index({sentence_, tokens}), at::Tensor()};
  }
  double next(int64_t sentence, int64_t last, int64_t token) const {
    return table_[sentence][last][token].item<double>();
  }

 private:
  at::Tensor table_, sentence_;
};

bool allowed(int64_t token) { return token != kPad && token != kBegin; }

// The best complete hypothesis of up to `longest` tokens, by trying all.
double best_by_enumeration(const Markov& model, int64_t sentence, int64_t longest, double alpha) {
  double best = -1e300;
  std::function<void(int64_t, int64_t, double)> visit = [&](int64_t last, int64_t length,
                                                            double sum) {
    for (int64_t token = 0; token < kVocabulary; ++token) {
      if (!allowed(token)) continue;
      const double total = sum + model.next(sentence, last, token);
      if (token == kEnd) {
        best = std::max(best, total / length_penalty(length + 1, alpha));
      } else if (length + 1 < longest) {
        visit(token, length + 1, total);
      }
    }
  };
  visit(kBegin, 0, 0);
  return best;
}

TEST(BeamSearch, AWideBeamFindsTheBestOfAll) {
  for (const double alpha : {0.0, 0.6, 1.0}) {
    Markov model(3, 11), same(3, 11);
    const auto results = beam_search(model, {4, 4, 4}, {.beam = 700, .length_alpha = alpha});
    for (int64_t s = 0; s < 3; ++s) {
      EXPECT_NEAR(results[static_cast<size_t>(s)].n_best[0].score,
                  best_by_enumeration(same, s, 4, alpha), 1e-12);
    }
  }
}

TEST(BeamSearch, PartsOnThreadsOfTheirOwnFindTheSame) {
  const int threads = at::get_num_threads();
  at::set_num_threads(3);
  std::vector<std::shared_ptr<Markov>> models;
  std::vector<SearchPart> parts;
  for (uint64_t seed = 0; seed < 7; ++seed) {
    models.push_back(std::make_shared<Markov>(4, seed));
    parts.push_back(
        {[model = models.back()] { return std::make_unique<Markov>(*model); }, {9, 8, 7, 6}});
  }
  const auto found = beam_search(parts, {.beam = 3, .n_best = 2});
  at::set_num_threads(threads);
  ASSERT_EQ(found.size(), parts.size());
  for (size_t p = 0; p < parts.size(); ++p) {
    const auto alone = beam_search(*models[p], parts[p].max_lengths, {.beam = 3, .n_best = 2});
    for (size_t s = 0; s < alone.size(); ++s)
      for (size_t k = 0; k < alone[s].n_best.size(); ++k) {
        EXPECT_EQ(found[p][s].n_best[k].tokens, alone[s].n_best[k].tokens);
        EXPECT_EQ(found[p][s].n_best[k].score, alone[s].n_best[k].score);
      }
  }
  const SearchPart none{[]() -> std::unique_ptr<StepModel> { throw InvalidArgument("no model"); },
                        {3}};
  EXPECT_THROW(beam_search({none, none}, {.beam = 3}), InvalidArgument);
}

TEST(BeamSearch, ABeamOfOneIsGreedy) {
  Markov model(5, 3), same(5, 3);
  const auto results = beam_search(model, std::vector<int64_t>(5, 9), {.beam = 1});
  for (int64_t s = 0; s < 5; ++s) {
    std::vector<int64_t> greedy;
    for (int64_t last = kBegin; greedy.size() < 9 && last != kEnd;) {
      int64_t best = -1;
      for (int64_t token = 0; token < kVocabulary; ++token) {
        if (allowed(token) && (best < 0 || same.next(s, last, token) > same.next(s, last, best)))
          best = token;
      }
      greedy.push_back(last = best);
    }
    EXPECT_EQ(results[static_cast<size_t>(s)].n_best[0].tokens, greedy);
  }
}

TEST(BeamSearch, BatchingChangesNothing) {
  Markov together(4, 8);
  const auto all = beam_search(together, {3, 5, 7, 9}, {.beam = 3, .n_best = 2});
  for (int64_t s = 0; s < 4; ++s) {
    Markov alone(4, 8);
    alone.select(at::tensor({s}, at::kLong));
    const auto one = beam_search(alone, {3 + 2 * s}, {.beam = 3, .n_best = 2});
    ASSERT_EQ(one[0].n_best.size(), all[static_cast<size_t>(s)].n_best.size());
    for (size_t k = 0; k < one[0].n_best.size(); ++k) {
      EXPECT_EQ(one[0].n_best[k].tokens, all[static_cast<size_t>(s)].n_best[k].tokens);
      EXPECT_EQ(one[0].n_best[k].score, all[static_cast<size_t>(s)].n_best[k].score);
    }
  }
}

TEST(BeamSearch, ScoresAreLengthNormalisedAndSorted) {
  Markov model(1, 21);
  const auto result = beam_search(model, {8}, {.beam = 6, .length_alpha = 0.8, .n_best = 6})[0];
  double before = 1e300;
  for (const Hypothesis& h : result.n_best) {
    if (h.complete) {
      EXPECT_EQ(h.tokens.back(), kEnd);
      EXPECT_LE(h.score, before);
      before = h.score;
    }
    EXPECT_NEAR(h.score,
                h.log_probability / length_penalty(static_cast<int64_t>(h.tokens.size()), 0.8),
                1e-12);
    for (const int64_t token : h.tokens) EXPECT_TRUE(allowed(token));
  }
}

TEST(BeamSearch, TheTreeHoldsEveryHypothesis) {
  Markov model(1, 5);
  const auto result = beam_search(model, {6}, {.beam = 3, .keep_tree = true})[0];
  int64_t finished = 0, pruned = 0;
  for (size_t i = 1; i < result.tree.size(); ++i) {
    ASSERT_LT(result.tree[i].parent, static_cast<int64_t>(i));
    ASSERT_GE(result.tree[i].parent, 0);
    EXPECT_LE(result.tree[i].log_probability,
              result.tree[static_cast<size_t>(result.tree[i].parent)].log_probability);
    finished += result.tree[i].fate == BeamNode::Fate::kFinished;
    pruned += result.tree[i].fate == BeamNode::Fate::kPruned;
  }
  EXPECT_GT(finished, 0);
  EXPECT_GT(pruned, 0);
}

// Attention that reads source word (token mod 3): coverage prefers hypotheses that read all.
class Reader : public Markov {
 public:
  using Markov::Markov;
  StepOutput step(const at::Tensor& tokens) override {
    StepOutput out = Markov::step(tokens);
    out.attention = at::one_hot(tokens.remainder(3), 3).to(at::kFloat);
    return out;
  }
};

TEST(BeamSearch, CoverageIsAddedToTheScore) {
  Reader model(1, 2);
  const auto result = beam_search(
      model, {5}, {.beam = 4, .length_alpha = 0, .coverage_beta = 0.5, .keep_attention = true})[0];
  const Hypothesis& h = result.n_best[0];
  ASSERT_TRUE(h.attention.defined());
  EXPECT_EQ(h.attention.size(0), static_cast<int64_t>(h.tokens.size()));
  const at::Tensor covered = h.attention.sum(0).clamp(1e-10, 1.0).to(at::kDouble).log();
  EXPECT_NEAR(h.score, h.log_probability + 0.5 * covered.sum().item<double>(), 1e-5);
}

TEST(BeamSearch, RefusesOptionsThatMeanNothing) {
  Markov model(1, 1);
  EXPECT_THROW(beam_search(model, {5}, {.beam = 0}), InvalidArgument);
  EXPECT_THROW(beam_search(model, {5}, {.beam = 2, .n_best = 3}), InvalidArgument);
  EXPECT_THROW(beam_search(model, {0}, {}), InvalidArgument);
}

// Says one token for ever, then the others in turn.
class Stammer : public StepModel {
 public:
  void select(const at::Tensor&) override {}
  StepOutput step(const at::Tensor& tokens) override {
    return {
        at::tensor({0.0, 0.0, 0.0, 1.0, 5.0, 4.0, 3.0}, at::kDouble).repeat({tokens.size(0), 1}),
        at::Tensor()};
  }
};

TEST(BeamSearch, RepeatsAreSuppressedWhereAsked) {
  const auto said = [](const BeamOptions& options) {
    Stammer model;
    return beam_search(model, {6}, options)[0].n_best[0].tokens;
  };
  using Tokens = std::vector<int64_t>;
  EXPECT_EQ(said({.beam = 1}), (Tokens{4, 4, 4, 4, 4, 4}));
  EXPECT_EQ(said({.beam = 1, .doubles = false}), (Tokens{4, 5, 4, 5, 4, 5}));
  EXPECT_EQ(said({.beam = 1, .doubles = false, .no_repeat = 2}), (Tokens{4, 5, 4, 6, 4, 3}));
  EXPECT_EQ(said({.beam = 1, .no_repeat = 1}), (Tokens{4, 5, 6, 3}));
  EXPECT_THROW(said({.no_repeat = -1}), InvalidArgument);
}

}  // namespace
}  // namespace fovea::nn
