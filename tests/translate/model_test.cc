// What every translation model owes the task: steps equal teacher forcing, padding changes nothing,
// attention is a distribution.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "systems/bahdanau/model.h"
#include "systems/convs2s/model.h"
#include "systems/dynamic_convolution/model.h"
#include "systems/gnmt/model.h"
#include "systems/luong/model.h"
#include "systems/seq2seq/model.h"
#include "systems/structured_attention/model.h"
#include "systems/transformer/model.h"
#include "translate/links.h"

namespace fovea::translate {
namespace {

constexpr Vocabularies kSizes{11, 9, false};

struct Named {
  std::string name;
  std::function<std::shared_ptr<Model>()> make;
};

std::shared_ptr<Model> luong(systems::LuongConfig config) {
  config.embedding = config.width = 8;
  if (config.source_width == systems::LuongConfig{}.source_width) config.source_width = 8;
  config.dropout = 0;
  return std::make_shared<systems::LuongModel>(config, kSizes);
}

using FormulaWeighing = systems::structured_attention::Weighing;
std::shared_ptr<Model> formulas(FormulaWeighing weighing) {
  return std::make_shared<systems::structured_attention::FormulaModel>(
      systems::structured_attention::FormulaConfig{.width = 6, .state = 5, .weighing = weighing},
      kSizes);
}

std::shared_ptr<Model> light(nn::Mixing mixing, nn::Edges edges = nn::Edges::kZeros,
                             nn::NormOrder order = nn::NormOrder::kPost) {
  systems::DynamicConvolutionConfig config;
  config.stacks = {.mixing = mixing,
                   .layer = {.width = 16,
                             .heads = 2,
                             .hidden = 12,
                             .dropout = 0,
                             .attention_dropout = 0,
                             .order = order},
                   .encoder_layers = 2,
                   .decoder_layers = 2,
                   .final_norm = order == nn::NormOrder::kPre,
                   .kernels = {3, 5},
                   .edges = edges};
  config.ends = {.width = 16, .embedding_dropout = 0};
  return std::make_shared<systems::DynamicConvolutionModel>(config, kSizes);
}

std::vector<Named> models() {
  using namespace systems;  // NOLINT: six models side by side
  TransformerConfig small;
  small.stacks.layer = {.width = 8, .heads = 2, .hidden = 12, .dropout = 0, .attention_dropout = 0};
  small.stacks.encoder_layers = small.stacks.decoder_layers = 2;
  small.ends = {.width = 8, .embedding_dropout = 0};
  TransformerConfig pre = small;
  pre.stacks.layer.order = nn::NormOrder::kPre;
  const auto entmax = [] {
    return std::make_shared<BahdanauModel>(
        BahdanauConfig{
            .embedding = 6, .width = 5, .alignment = 7, .dropout = 0, .normaliser = Entmax{}},
        kSizes);
  };
  return {
      {"transformer", [=] { return std::make_shared<TransformerModel>(small, kSizes); }},
      {"transformer_pre", [=] { return std::make_shared<TransformerModel>(pre, kSizes); }},
      {"bahdanau",
       [] {
         return std::make_shared<BahdanauModel>(
             BahdanauConfig{.embedding = 6, .width = 5, .alignment = 7, .dropout = 0}, kSizes);
       }},
      {"bahdanau_entmax", entmax},
      {"luong_dot", [] { return luong({.score = LuongScore::kDot}); }},
      {"luong_general", [] { return luong({.score = LuongScore::kGeneral, .reverse = true}); }},
      {"luong_concat",
       [] { return luong({.layers = 2, .score = LuongScore::kConcat, .input_feeding = false}); }},
      {"luong_location",
       [] { return luong({.score = LuongScore::kLocation, .bidirectional = false}); }},
      {"luong_rectangular",
       [] { return luong({.source_width = 6, .layers = 2, .score = LuongScore::kGeneral}); }},
      {"luong_narrow_v",
       [] { return luong({.source_width = 10, .attention = 3, .score = LuongScore::kConcat}); }},
      {"luong_concatenation", [] { return luong({.join = systems::LuongJoin::kConcatenation}); }},
      {"luong_local_m",
       [] { return luong({.window = LuongWindow::kMonotonic, .half_window = 2}); }},
      {"luong_local_p",
       [] { return luong({.window = LuongWindow::kPredictive, .half_window = 2}); }},
      {"seq2seq",
       [] {
         return std::make_shared<Seq2SeqModel>(
             Seq2SeqConfig{.embedding = 6, .width = 5, .dropout = 0}, kSizes);
       }},
      {"gnmt",
       [] {
         return std::make_shared<GnmtModel>(
             GnmtConfig{.embedding = 6, .width = 5, .layers = 4, .dropout = 0}, kSizes);
       }},
      {"gnmt_new_query",
       [] {
         return std::make_shared<GnmtModel>(
             GnmtConfig{
                 .embedding = 6, .width = 5, .layers = 2, .dropout = 0, .query = GnmtQuery::kNew},
             kSizes);
       }},
      {"light_convolution", [] { return light(nn::Mixing::kLight); }},
      {"light_renormalised",
       [] { return light(nn::Mixing::kLight, nn::Edges::kRenormalised, nn::NormOrder::kPre); }},
      {"dynamic_convolution", [] { return light(nn::Mixing::kDynamic); }},
      {"dynamic_renormalised",
       [] { return light(nn::Mixing::kDynamic, nn::Edges::kRenormalised); }},
      {"quaternion", [] { return light(nn::Mixing::kQuaternion); }},
      {"quaternion_pre",
       [] { return light(nn::Mixing::kQuaternion, nn::Edges::kZeros, nn::NormOrder::kPre); }},
      {"structured_trees", [] { return formulas(FormulaWeighing::kStructured); }},
      {"structured_softmax", [] { return formulas(FormulaWeighing::kSoftmax); }},
      {"structured_none", [] { return formulas(FormulaWeighing::kNone); }},
      {"convs2s",
       [] {
         return std::make_shared<ConvS2SModel>(
             ConvS2SConfig{.width = 8, .encoder_layers = 2, .decoder_layers = 2, .dropout = 0},
             kSizes);
       }},
  };
}

Tokens tokens(std::vector<int64_t> source, std::vector<int64_t> target) {
  Tokens t;
  t.source.ids = std::move(source);
  t.target.ids = std::move(target);
  for (size_t i = 0; i < t.source.ids.size(); ++i)
    t.source.words.push_back(static_cast<int32_t>(i));
  for (size_t i = 0; i < t.target.ids.size(); ++i)
    t.target.words.push_back(static_cast<int32_t>(i));
  return t;
}

class Models : public testing::TestWithParam<size_t> {
 protected:
  void SetUp() override {
    torch::manual_seed(5);
    model_ = models()[GetParam()].make();
    model_->eval();
  }
  std::shared_ptr<Model> model_;
  const Tokens long_ = tokens({4, 5, 6, 7, 8, 9, 10}, {4, 5, 6, 7, 8}),
               short_ = tokens({5, 4}, {8, 7});
};

TEST_P(Models, StepsEqualTeacherForcing) {
  const torch::NoGradGuard no_grad;
  const Batch batch = make_batch({&long_, &short_}, torch::kCPU);
  const at::Tensor whole = at::log_softmax(model_->logits(batch), -1);
  const auto steps = model_->start(batch, Want::kTokens);
  for (int64_t t = 0; t < batch.target_in.size(1); ++t) {
    const at::Tensor one = at::log_softmax(steps->step(batch.target_in.select(1, t)).logits, -1);
    EXPECT_LT((one[0] - whole[0][t]).abs().max().item<double>(), 1e-5) << "long, step " << t;
    if (t < 3) {
      EXPECT_LT((one[1] - whole[1][t]).abs().max().item<double>(), 1e-5) << "short, step " << t;
    }
  }
}

TEST_P(Models, PaddingChangesNothing) {
  const torch::NoGradGuard no_grad;
  const at::Tensor together =
      model_->logits(make_batch({&long_, &short_}, torch::kCPU))[1].slice(0, 0, 3);
  const at::Tensor alone = model_->logits(make_batch({&short_}, torch::kCPU))[0];
  EXPECT_LT((together - alone).abs().max().item<double>(), 1e-5);
}

TEST_P(Models, SelectedRowsGoOnAsTheyWere) {
  const torch::NoGradGuard no_grad;
  const Batch batch = make_batch({&long_, &short_}, torch::kCPU);
  const auto straight = model_->start(batch, Want::kTokens),
             turned = model_->start(batch, Want::kTokens);
  straight->step(batch.target_in.select(1, 0));
  turned->step(batch.target_in.select(1, 0));
  turned->select(torch::tensor({1, 0, 1}, torch::kLong));
  const at::Tensor a = straight->step(torch::tensor({4, 8}, torch::kLong)).logits;
  const at::Tensor b = turned->step(torch::tensor({8, 4, 8}, torch::kLong)).logits;
  EXPECT_LT(
      (a.index_select(0, torch::tensor({1, 0, 1}, torch::kLong)) - b).abs().max().item<double>(),
      1e-5);
}

TEST_P(Models, AlignmentIsADistributionOverTheSource) {
  const torch::NoGradGuard no_grad;
  const Batch batch = make_batch({&long_, &short_}, torch::kCPU);
  const at::Tensor rows = model_->alignment(batch);
  if (!rows.defined()) GTEST_SKIP() << "no attention in this model";
  ASSERT_EQ(rows.sizes(), (std::vector<int64_t>{2, 6, 8}));
  EXPECT_EQ(rows[1].slice(1, 3).abs().max().item<double>(), 0) << "weight on padding";
  const bool local_p =
      models()[GetParam()].name == "luong_local_p";  // its Gaussian takes some away
  const bool local = local_p || models()[GetParam()].name == "luong_local_m";
  const at::Tensor sums = rows[0].sum(-1);
  if (!local) {
    EXPECT_LT((sums - 1).abs().max().item<double>(), 1e-5);
  }
  EXPECT_LE(sums.max().item<double>(), 1 + 1e-5);
  // Decoding reports the same rows.
  const auto steps = model_->start(batch, Want::kAttention);
  for (int64_t t = 0; t < 3; ++t) {
    const at::Tensor step = steps->step(batch.target_in.select(1, t)).attention;
    EXPECT_LT((step - rows.select(1, t)).abs().max().item<double>(), 1e-5) << "step " << t;
  }
}

TEST_P(Models, EveryParameterHasAGradient) {
  const Batch batch = make_batch({&long_, &short_}, torch::kCPU);
  token_loss(model_->logits(batch), batch, 0.1).smoothed.backward();
  for (const auto& p : model_->named_parameters())
    EXPECT_TRUE(p.value().grad().defined()) << p.key();
}

INSTANTIATE_TEST_SUITE_P(All, Models, testing::Range<size_t>(0, models().size()),
                         [](const testing::TestParamInfo<size_t>& info) {
                           return models()[info.param].name;
                         });

// A layer whose weights are zero writes zeros. As the third, it hands on what it read, so that the
// model is that of two layers; as the second, it hands on nothing.
TEST(Gnmt, LayersFromTheThirdOnAddWhatTheyRead) {
  torch::manual_seed(7);
  const torch::NoGradGuard no_grad;
  const Tokens pair = tokens({4, 5, 6}, {7, 8});
  const Batch batch = make_batch({&pair}, torch::kCPU);
  systems::GnmtConfig config{.embedding = 6, .width = 5, .layers = 3, .dropout = 0};
  systems::GnmtModel three(config, kSizes);
  config.layers = 2;
  systems::GnmtModel two(config, kSizes);
  const auto parameters = three.named_parameters();
  for (auto& p : two.named_parameters()) p.value().copy_(parameters[p.key()]);
  const auto silence = [](Model& model, const std::string& layer) {
    for (auto& p : model.named_parameters())
      if (p.key().starts_with("encoder" + layer) || p.key().starts_with("decoder" + layer))
        p.value().zero_();
  };
  silence(three, "3");
  EXPECT_TRUE(three.logits(batch).equal(two.logits(batch)));
  silence(two, "2");
  const at::Tensor logits = two.logits(batch), bias = two.named_parameters()["output.bias"];
  EXPECT_TRUE(logits.equal(bias.expand_as(logits)));
}

TEST(TokenLoss, SmoothingLeavesPadOut) {
  torch::manual_seed(1);
  const at::Tensor logits = torch::randn({2, 3, 6}),
                   target = torch::tensor({{4, 5, 3}, {2, 3, 0}}, torch::kLong);
  const TokenLoss loss = token_loss(logits,
                                    Batch{.source = {},
                                          .source_lengths = {},
                                          .target_in = {},
                                          .target_out = target,
                                          .target_tokens = 5},
                                    0.2);
  double expected = 0;
  const at::Tensor log_p = at::log_softmax(logits, -1);
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t t = 0; t < 3; ++t) {
      const int64_t y = target[b][t].item<int64_t>();
      if (y == kPad) continue;
      for (int64_t c = 1; c < 6; ++c)
        expected -= ((c == y ? 0.8 : 0.0) + 0.2 / 5) * log_p[b][t][c].item<double>() / 5;
    }
  }
  EXPECT_NEAR(loss.smoothed.item<double>(), expected, 1e-5);
}

TEST(WordWeights, PiecesAreSummedOnTheSourceAndAveragedOnTheTarget) {
  Tokens t = tokens({4, 5, 6}, {4, 5});
  t.source.words = {0, 0, 1};
  t.target.words = {0, 0};
  const at::Tensor weights = torch::tensor(
      {{0.1, 0.2, 0.3, 0.4}, {0.3, 0.4, 0.1, 0.2}, {0.0, 0.0, 0.0, 1.0}}, torch::kFloat);
  const at::Tensor words = word_weights(weights, t);  // EOS row and column are left out
  EXPECT_NEAR(words[0][0].item<double>(), 0.5, 1e-6);
  EXPECT_NEAR(words[0][1].item<double>(), 0.2, 1e-6);
  EXPECT_EQ(best_links(words), (metrics::Links{{0, 0}}));
}

}  // namespace
}  // namespace fovea::translate
