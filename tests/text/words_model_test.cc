// The models of text: what their equations imply, and packing that changes
// nothing.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include "data/packed.h"
#include "systems/document_attention/model.h"
#include "systems/fixed_attention/model.h"
#include "systems/hierarchical/model.h"
#include "systems/word_sum/model.h"
#include "text/recurrent.h"

namespace fovea::systems {
namespace {

using text::Batch;
using text::Want;
using Sentence = std::vector<int64_t>;
using Document = std::vector<Sentence>;

constexpr double kTolerance = 2e-6;
const text::EmbeddingOptions kWords{.words = 30, .width = 6, .deviation = 0.5};

Batch batch_of(const std::vector<Document>& documents, std::vector<int64_t> aspects = {}) {
  std::vector<int64_t> words;
  std::vector<int32_t> sentences = {0}, bounds = {0};
  for (const Document& document : documents) {
    for (const Sentence& sentence : document) {
      words.insert(words.end(), sentence.begin(), sentence.end());
      sentences.push_back(static_cast<int32_t>(words.size()));
    }
    bounds.push_back(static_cast<int32_t>(sentences.size()) - 1);
  }
  aspects.resize(documents.size(), 0);
  return {torch::tensor(words, torch::kLong), torch::tensor(sentences, torch::kInt),
          torch::tensor(bounds, torch::kInt), torch::tensor(aspects, torch::kLong)};
}

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return a.numel() == 0 ? 0 : (a - b).abs().max().item<double>();
}

struct Maker {
  std::string name;
  bool ordered;  // does the order of words matter?
  std::function<std::shared_ptr<text::Model>()> make;
};

std::vector<Maker> models() {
  const auto fixed = [](FixedAttentionModel::Config config) {
    config.embedding = kWords;
    return std::make_shared<FixedAttentionModel>(config);
  };
  return {
      {"word_sum", false,
       [] { return std::make_shared<WordSumModel>(WordSumModel::Config{.embedding = kWords}); }},
      {"word_mean", false,
       [] {
         return std::make_shared<WordSumModel>(
             WordSumModel::Config{.embedding = kWords, .classes = 3, .pooling = Uniform{}});
       }},
      {"fixed_dot", false, [=] { return fixed({.queries = 3}); }},
      {"fixed_mlp_sparsemax", false,
       [=] {
         return fixed(
             {.queries = 2, .score = FixedScore::kMlp, .hidden = 5, .normaliser = Sparsemax{}});
       }},
      {"fixed_none", false, [=] { return fixed({.queries = 2, .normaliser = Unnormalised{}}); }},
      {"fixed_self_attention", true,
       [=] {
         return fixed(
             {.queries = 2, .context = std::make_shared<SelfAttentionContext>(kWords.width, 2)});
       }},
      {"fixed_recurrent", true,
       [=] {
         return fixed(
             {.queries = 2, .context = std::make_shared<RecurrentContext>(kWords.width, 3, 0.0)});
       }},
      {"atae", true,
       [] {
         return std::make_shared<DocumentAttentionModel>(DocumentAttentionModel::Config{
             .embedding = kWords, .aspects = 8, .aspect_width = 4, .width = 5});
       }},
      {"at_sum", true,
       [] {
         return std::make_shared<DocumentAttentionModel>(
             DocumentAttentionModel::Config{.embedding = kWords,
                                            .aspects = 8,
                                            .aspect_width = 4,
                                            .width = 5,
                                            .use = AspectUse::kAt,
                                            .score = AspectScore::kSum});
       }},
      {"hierarchical", true,
       [] {
         return std::make_shared<HierarchicalModel>(
             HierarchicalModel::Config{.embedding = kWords, .width = 4, .context = 5});
       }},
      {"hierarchical_entmax", true,
       [] {
         return std::make_shared<HierarchicalModel>(HierarchicalModel::Config{
             .embedding = kWords, .width = 4, .context = 5, .normaliser = Entmax{}});
       }},
  };
}

class Models : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    torch::manual_seed(3);
    model_ = models()[GetParam()].make();
    model_->eval();
  }
  std::shared_ptr<text::Model> model_;
  const Document a_ = {{4, 5, 6, 7, 8, 9}, {10, 11}}, b_ = {{12, 13, 14}}, empty_ = {{}};
};

// What else is in the batch changes neither the answer, nor where it looked, nor the gradient.
TEST_P(Models, NeighboursChangeNothing) {
  const auto together = model_->answer(batch_of({a_, b_, empty_}, {4, 5, 0}), Want::kLook);
  const auto alone = model_->answer(batch_of({b_}, {5}), Want::kLook);
  EXPECT_LT(difference(together.logits[1], alone.logits[0]), kTolerance);
  EXPECT_LT(difference(together.look.words.slice(1, 8, 11), alone.look.words), kTolerance);

  const auto gradients = [&](const torch::Tensor& logits) {
    model_->zero_grad();
    (logits * logits).sum().backward();
    std::vector<torch::Tensor> out;
    for (const auto& p : model_->parameters())
      out.push_back(p.grad().defined() ? p.grad().clone() : torch::zeros_like(p));
    return out;
  };
  const auto inside =
      gradients(model_->logits(batch_of({a_, b_, empty_}, {4, 5, 0})).slice(0, 1, 2));
  const auto outside = gradients(model_->logits(batch_of({b_}, {5})));
  for (size_t i = 0; i < inside.size(); ++i)
    EXPECT_LT(difference(inside[i], outside[i]), 1e-5) << i;
}

TEST_P(Models, EmptyAndUnknownDocumentsHaveFiniteAnswers) {
  const auto answer = model_->answer(batch_of({{{}}, {{1, 1, 1}}, {{}, {}}, {}}), Want::kLook);
  EXPECT_TRUE(answer.logits.isfinite().all().item<bool>());
  EXPECT_TRUE(answer.look.words.isfinite().all().item<bool>());
  EXPECT_EQ(difference(answer.logits[0], answer.logits[3]), 0) << "no word is no word";
  EXPECT_TRUE(model_->logits(batch_of({{}})).isfinite().all().item<bool>());
}

TEST_P(Models, OrderMattersOnlyToThoseWhoReadIt) {
  const double moved = difference(model_->logits(batch_of({{{4, 5, 6, 7}}})),
                                  model_->logits(batch_of({{{7, 5, 4, 6}}})));
  if (models()[GetParam()].ordered)
    EXPECT_GT(moved, 1e-4);
  else
    EXPECT_LT(moved, kTolerance);
}

TEST_P(Models, PadAndUnknownNeverMove) {
  model_->train();
  torch::optim::Adam adam(model_->parameters(), torch::optim::AdamOptions(0.1));
  model_->logits(batch_of({{{0, 1, 4, 5}}, {{1}}}, {4, 1})).square().sum().backward();
  adam.step();
  for (const auto& p : model_->named_parameters())
    if (p.key() == "embedding.weight") {
      EXPECT_EQ(p.value().slice(0, 0, 2).abs().max().item<double>(), 0);
      EXPECT_GT(p.value()[4].abs().max().item<double>(), 0);
    }
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::Range<size_t>(0, models().size()),
                         [](const auto& info) { return models()[info.param].name; });

// One long line among short ones costs its own length, not that length for each of them.
TEST(PackedWeights, ALongBagPadsNoOther) {
  const int64_t short_bags = 4000, longest = 100000;  // padded: 1.6 GB
  std::vector<int32_t> offsets = {0, static_cast<int32_t>(longest)};
  for (int64_t i = 0; i < short_bags; ++i)
    offsets.push_back(offsets.back() + static_cast<int32_t>(i % 5));
  const int64_t bags = short_bags + 1, total = offsets.back();
  torch::manual_seed(1);
  const torch::Tensor bounds = torch::tensor(offsets, torch::kInt),
                      query = torch::randn({bags, 1, 4}), key = torch::randn({total, 1, 4});
  const auto peak = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;  // MiB
  };
  const Choices choices{.score = Dot{1.0}, .structure = Ragged{data::one_each(bags), bounds}};
  const auto before = peak();
  const torch::Tensor found = text::packed_weights(query, key, choices, bounds);
  EXPECT_LT(peak() - before, 200);
  // The same as softmax over each bag.
  const torch::Tensor owner = data::owners(bounds);
  const torch::Tensor shares =
      (query.index_select(0, owner) * key).sum(2).squeeze(1).to(torch::kDouble).exp();
  const torch::Tensor sums =
      torch::zeros({bags}, torch::kDouble).index_add(0, owner, shares).index_select(0, owner);
  EXPECT_LT(difference(found[0].to(torch::kDouble), shares / sums), 1e-5);
}

// ---- word-sum -----------------------------------------------------------------------------------

TEST(WordSum, TheAnswerIsTheSumOfPolarities) {
  torch::manual_seed(1);
  WordSumModel model({.embedding = kWords});
  model.eval();
  const auto answer = model.answer(batch_of({{{4, 9, 1, 9, 0}}, {{}}}), Want::kLook);
  const torch::Tensor polarity = model.polarity(model.embedding->weight).squeeze(1);
  EXPECT_NEAR((answer.logits[0][1] - answer.logits[0][0]).item<double>(),
              (polarity[4] + 2 * polarity[9] + model.bias[0]).item<double>(), 1e-5);
  EXPECT_EQ(answer.logits[1][1].item<float>(), model.bias[0].item<float>())
      << "an empty sentence: the bias only";
  EXPECT_EQ(answer.look.words[0][2].item<float>(), 0) << "UNK";
  EXPECT_EQ(answer.look.words[0][4].item<float>(), 0) << "PAD";
}

// ---- fixed-attention ----------------------------------------------------------------------------

TEST(FixedAttention, ScoresDependOnTheWordAlone) {
  for (const FixedScore score : {FixedScore::kDot, FixedScore::kMlp}) {
    torch::manual_seed(1);
    FixedAttentionModel model({.embedding = kWords, .queries = 2, .score = score});
    model.eval();
    const auto of = [&](const Sentence& words) {
      return model.scores(model.embedding->forward(torch::tensor(words, torch::kLong)));
    };
    EXPECT_LT(difference(of({4, 5, 6}).select(1, 0), of({4, 9, 11, 12, 5}).select(1, 0)), 1e-7);
    // Before softmax only: the weights do change.
    const auto weight = [&](const Sentence& words) {
      return model.answer(batch_of({{words}}), Want::kLook).look.words.select(1, 0);
    };
    EXPECT_GT(difference(weight({4, 5, 6}), weight({4, 9, 11, 12, 5})), 1e-3);
  }
}

TEST(FixedAttention, ThetaZeroIsMeanPooling) {
  torch::manual_seed(1);
  FixedAttentionModel model({.embedding = kWords, .queries = 1});
  model.eval();
  const torch::NoGradGuard no_grad;
  EXPECT_GT(model.theta.abs().max().item<double>(), 0);
  model.theta.zero_();
  const auto answer = model.answer(batch_of({{{4, 5, 6, 7, 8}}}), Want::kLook);
  EXPECT_LT(difference(answer.look.words, torch::full({1, 5}, 0.2)), 1e-7);
  const torch::Tensor mean = model.embedding->weight.slice(0, 4, 9).mean(0);
  const auto out = model.named_parameters();
  EXPECT_LT(difference(answer.logits[0], out["output.weight"].matmul(mean) + out["output.bias"]),
            kTolerance);
}

TEST(FixedAttention, QueriesBeginApartAndAreNormalisedEachOnItsOwn) {
  torch::manual_seed(1);
  FixedAttentionModel model({.embedding = kWords, .queries = 4});
  const torch::Tensor looked =
      model.answer(batch_of({{{4, 5, 6}}, {{7, 8}}}), Want::kLook).look.words;
  ASSERT_EQ(looked.sizes(), (std::vector<int64_t>{4, 5}));
  EXPECT_LT(difference(looked.slice(1, 0, 3).sum(1), torch::ones({4})), 1e-6);
  EXPECT_LT(difference(looked.slice(1, 3).sum(1), torch::ones({4})), 1e-6);
  for (int64_t r = 1; r < 4; ++r) EXPECT_GT(difference(model.theta[0], model.theta[r]), 1e-3);
}

TEST(FixedAttention, ThePenaltyHasTheGradientOfItsFormula) {
  for (const FixedScore score : {FixedScore::kDot, FixedScore::kMlp}) {
    torch::manual_seed(1);
    FixedAttentionModel model(
        {.embedding = kWords, .queries = 3, .score = score, .hidden = 5, .penalty = 0.7});
    model.to(torch::kDouble);
    // Of several words, of one, and of none.
    const std::vector<Document> documents = {{{4, 5, 6, 7, 8}}, {{9}}, {{}}, {{5, 10}}};
    const torch::Tensor penalty = model.answer(batch_of(documents), Want::kLogits).penalty;
    torch::Tensor expected = torch::zeros({}, torch::kDouble);
    for (const Document& document : documents) {
      const torch::Tensor x = model.embedding->forward(torch::tensor(document[0], torch::kLong)),
                          a = model.scores(x).softmax(1),
                          apart = a.matmul(a.t()) - torch::eye(3, torch::kDouble);
      expected = expected + 0.7 / 4 * apart.square().sum();
    }
    EXPECT_NEAR(penalty.item<double>(), expected.item<double>(), 1e-12);
    const std::vector<torch::Tensor> of = {model.theta, model.embedding->weight};
    const auto got = torch::autograd::grad({penalty}, of),
               want = torch::autograd::grad({expected}, of);
    for (size_t i = 0; i < of.size(); ++i) {
      EXPECT_GT(want[i].abs().max().item<double>(), 1e-4);
      EXPECT_LT(difference(got[i], want[i]), 1e-12);
    }
    model.eval();
    EXPECT_FALSE(model.answer(batch_of(documents), Want::kLogits).penalty.defined());
  }
}

// ---- encoders -----------------------------------------------------------------------------------

TEST(Walk, EqualsThePaddedEncoderOnEveryRealWord) {
  for (const nn::Cell cell : {nn::Cell::kGru, nn::Cell::kLstm}) {
    torch::manual_seed(2);
    nn::Recurrent encoder(nn::RecurrentOptions{.cell = cell, .input = 3, .width = 4});
    const std::vector<int64_t> lengths = {2, 5, 1, 5};
    const torch::Tensor x = torch::randn({13, 3}),
                        offsets =
                            torch::tensor({0, 2, 2, 7, 8, 13}, torch::kInt);  // the second is empty
    const text::Walked walked = text::walk(encoder, x, offsets);
    torch::Tensor padded = torch::full({4, 5, 3}, 1e6);  // padding that would show
    for (int64_t i = 0, at = 0; i < 4; at += lengths[static_cast<size_t>(i)], ++i)
      padded[i].slice(0, 0, lengths[static_cast<size_t>(i)]) =
          x.slice(0, at, at + lengths[static_cast<size_t>(i)]);
    const nn::Encoded expected = encoder(padded, torch::tensor(lengths, torch::kLong));
    for (int64_t i = 0, at = 0; i < 4; at += lengths[static_cast<size_t>(i)], ++i) {
      const int64_t n = lengths[static_cast<size_t>(i)];
      EXPECT_LT(difference(walked.states.slice(0, at, at + n), expected.states[i].slice(0, 0, n)),
                1e-6);
      EXPECT_LT(difference(walked.last[i == 0 ? 0 : i + 1], expected.forward[i]), 1e-6);
    }
    EXPECT_EQ(walked.last[1].abs().max().item<double>(), 0);
  }
}

TEST(Walk, ForgettingReadsAfreshInTrainingOnly) {
  for (const nn::Cell cell : {nn::Cell::kGru, nn::Cell::kLstm}) {
    torch::manual_seed(3);
    nn::Recurrent encoder(nn::RecurrentOptions{.cell = cell, .input = 3, .width = 4});
    constexpr int64_t kPairs = 400;  // sequences of two words, all alike
    const torch::Tensor pair = torch::randn({2, 3}), x = pair.repeat({kPairs, 1}),
                        offsets = torch::arange(0, 2 * kPairs + 1, 2, torch::kInt);
    const torch::Tensor whole = text::walk(encoder, x, offsets).states.slice(0, 0, 2),
                        alone =
                            text::walk(encoder, pair, torch::tensor({0, 1, 2}, torch::kInt)).states;
    const text::Walked walked = text::walk(encoder, x, offsets, 0.3);
    double afresh[2] = {0, 0};
    for (int64_t i = 0; i < kPairs; ++i) {
      for (const int64_t word :
           {0, 1}) {  // the first word's backward half is what carries, the second's forward half
        const auto carried = [&](const torch::Tensor& states, int64_t row) {
          return states[row].slice(0, word ? 0 : 4, word ? 4 : 8);
        };
        const torch::Tensor found = carried(walked.states, 2 * i + word);
        const bool forgot = difference(found, carried(alone, word)) < 1e-6;
        EXPECT_TRUE(forgot || difference(found, carried(whole, word)) < 1e-6);
        afresh[word] += forgot;
      }
    }
    for (const double count : afresh) EXPECT_NEAR(count / kPairs, 0.3, 0.1);
    encoder->eval();
    EXPECT_LT(difference(text::walk(encoder, x, offsets, 0.3).states.slice(0, 0, 2), whole), 1e-6);
  }
}

// ---- document-attention -------------------------------------------------------------------------

TEST(DocumentAttention, TheAspectTurnsTheWeightsWhereItCan) {
  const auto moved = [](AspectUse use, AspectScore score) {
    torch::manual_seed(4);
    DocumentAttentionModel model({.embedding = kWords,
                                  .aspects = 8,
                                  .aspect_width = 4,
                                  .width = 5,
                                  .use = use,
                                  .score = score});
    model.eval();
    const auto looked = [&](int64_t aspect) {
      return model.answer(batch_of({{{4, 5, 6, 7}}}, {aspect}), Want::kLook).look.words;
    };
    return difference(looked(4), looked(5));
  };
  EXPECT_LT(moved(AspectUse::kAt, AspectScore::kConcat), 1e-6)
      << "the paper's score adds the same number to every word";
  EXPECT_GT(moved(AspectUse::kAt, AspectScore::kSum), 1e-4);
  EXPECT_GT(moved(AspectUse::kAtae, AspectScore::kConcat), 1e-4);
  EXPECT_EQ(moved(AspectUse::kBlind, AspectScore::kSum), 0);
}

// ---- hierarchical -------------------------------------------------------------------------------

TEST(Hierarchical, EmptySentencesChangeNothingAndWeighNothing) {
  torch::manual_seed(5);
  HierarchicalModel model({.embedding = kWords, .width = 4, .context = 5});
  model.eval();
  const auto plain = model.answer(batch_of({{{4, 5, 6}, {7, 8}}}), Want::kLook);
  const auto holes = model.answer(batch_of({{{}, {4, 5, 6}, {}, {}, {7, 8}, {}}}), Want::kLook);
  EXPECT_LT(difference(plain.logits, holes.logits), kTolerance);
  for (const int64_t s : {0, 2, 3, 5}) EXPECT_EQ(holes.look.sentences[s].item<float>(), 0);
  EXPECT_LT(difference(plain.look.sentences[1], holes.look.sentences[4]), kTolerance);
  EXPECT_NEAR(holes.look.sentences.sum().item<double>(), 1, 1e-6);
}

TEST(Hierarchical, OneSentenceIsFixedAttentionOnItsStates) {
  torch::manual_seed(6);
  AttentiveEncoder level(AttentiveEncoderImpl::Config{.input = 3, .width = 4, .context = 5});
  const torch::Tensor x = torch::randn({6, 3}), offsets = torch::tensor({0, 6}, torch::kInt);
  const auto encoded = level(x, offsets, Want::kLook);
  const auto encoder =
      std::dynamic_pointer_cast<nn::RecurrentImpl>(level->named_children()["encoder"]);
  nn::Recurrent holder(encoder);
  const torch::Tensor h = text::walk(holder, x, offsets).states;
  const auto p = level->named_parameters();
  const torch::Tensor scores =
      torch::tanh(h.matmul(p["project.weight"].t()) + p["project.bias"]).matmul(p["context"]);
  EXPECT_LT(difference(encoded.weights, scores.softmax(0)), 1e-6);
  EXPECT_LT(difference(encoded.mixed[0], scores.softmax(0).unsqueeze(0).matmul(h)[0]), 1e-6);
}

}  // namespace
}  // namespace fovea::systems
