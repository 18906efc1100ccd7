#include "fovea/nn/transformer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/nn/distance.h"

namespace fovea::nn {
namespace {

constexpr double kTolerance = 1e-5;

bool close(const at::Tensor& a, const at::Tensor& b, double tolerance = kTolerance) {
  return test::close(a, b, tolerance);
}

// Copies every parameter by name; fails where the two disagree about names or shapes.
void copy_weights(const torch::nn::Module& from, torch::nn::Module& to) {
  const torch::NoGradGuard no_grad;
  auto source = from.named_parameters();
  auto target = to.named_parameters();
  ASSERT_EQ(source.size(), target.size());
  for (auto& item : target) {
    ASSERT_TRUE(source.contains(item.key())) << item.key();
    ASSERT_EQ(source[item.key()].sizes(), item.value().sizes()) << item.key();
    item.value().copy_(source[item.key()]);
  }
}

TransformerOptions small() {
  TransformerOptions o;
  o.layer = {.width = 24, .heads = 4, .hidden = 40, .dropout = 0.0, .attention_dropout = 0.0};
  o.encoder_layers = 2;
  o.decoder_layers = 3;
  return o;
}

torch::nn::Transformer theirs_like(const TransformerOptions& o) {
  return torch::nn::Transformer(torch::nn::TransformerOptions(o.layer.width, o.layer.heads,
                                                              o.encoder_layers, o.decoder_layers)
                                    .dim_feedforward(o.layer.hidden)
                                    .dropout(0.0));
}

TEST(Transformer, GivesWhatLibtorchsGivesWithItsWeights) {
  torch::manual_seed(1);
  Transformer ours(small());
  torch::nn::Transformer theirs = theirs_like(small());
  copy_weights(*theirs, *ours);
  const at::Tensor source = torch::randn({3, 7, 24}), target = torch::randn({3, 5, 24});
  const at::Tensor lengths = torch::tensor({7, 4, 1}, torch::kInt);
  const at::Tensor padding =
      torch::arange(7).unsqueeze(0) >= lengths.unsqueeze(1);  // true: may not be seen
  const at::Tensor expected =
      theirs->forward(source.transpose(0, 1), target.transpose(0, 1), /*src_mask=*/{},
                      torch::nn::TransformerImpl::generate_square_subsequent_mask(5),
                      /*memory_mask=*/{}, padding, /*tgt_key_padding_mask=*/{}, padding);
  EXPECT_TRUE(close(ours->forward(source, target, lengths), expected.transpose(0, 1)));
}

TEST(Transformer, WeightsGoBackToLibtorchs) {
  torch::manual_seed(2);
  Transformer ours(small());
  torch::nn::Transformer theirs = theirs_like(small());
  copy_weights(*ours, *theirs);
  const at::Tensor source = torch::randn({2, 6, 24}), target = torch::randn({2, 4, 24});
  const at::Tensor expected =
      theirs->forward(source.transpose(0, 1), target.transpose(0, 1), {},
                      torch::nn::TransformerImpl::generate_square_subsequent_mask(4));
  EXPECT_TRUE(close(ours->forward(source, target), expected.transpose(0, 1)));
}

// Beside attention nothing looks at another position: where each sees itself alone, the stack is as
// many networks as positions.
TEST(Transformer, EachPositionFlowsThroughItsOwnPath) {
  torch::manual_seed(4);
  const torch::NoGradGuard no_grad;
  Encoder encoder(small().layer, 3, /*final_norm=*/true);
  encoder->eval();
  const at::Tensor x = torch::randn({1, 6, 24});
  at::Tensor changed = x.clone();
  changed[0][2] += 1;
  const Attention alone{.structure = Window{0, 0}};
  const at::Tensor before = encoder->forward(x, alone), after = encoder->forward(changed, alone);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(torch::equal(before[0][i], after[0][i]), i != 2) << "position " << i;
  // With attention over all, the change is seen everywhere.
  const at::Tensor seen = encoder->forward(changed);
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_FALSE(torch::equal(encoder->forward(x)[0][i], seen[0][i])) << "position " << i;
}

TEST(Transformer, CachedDecodingIsRecomputing) {
  for (const NormOrder order : {NormOrder::kPost, NormOrder::kPre}) {
    torch::manual_seed(3);
    TransformerOptions options = small();
    options.layer.order = order;
    Transformer model(options);
    model->eval();
    const torch::NoGradGuard no_grad;
    const at::Tensor memory = model->encoder->forward(torch::randn({2, 6, 24}));
    const at::Tensor lengths = torch::tensor({6, 3}, torch::kInt);
    const at::Tensor target = torch::randn({2, 5, 24});
    const at::Tensor whole =
        model->decoder->forward(target, memory, {.structure = Causal{}}, {.key_lengths = lengths});
    DecoderCache cache = model->decoder->start(memory, lengths);
    for (int64_t t = 0; t < 5; ++t) {
      const at::Tensor one = model->decoder->step(target.narrow(1, t, 1), cache);
      EXPECT_TRUE(close(one, whole.narrow(1, t, 1))) << "position " << t;
    }
  }
}

// Rows share a memory, leave, change places: each goes on as if it had been decoded alone.
TEST(Transformer, SelectedRowsGoOnAsTheyWere) {
  torch::manual_seed(4);
  Transformer model(small());
  model->eval();
  const torch::NoGradGuard no_grad;
  constexpr int64_t kSteps = 20;  // past the room a cache begins with
  const at::Tensor memory = torch::randn({3, 4, 24}),
                   lengths = torch::tensor({4, 2, 3}, torch::kInt);
  DecoderCache cache = model->decoder->start(memory, lengths);
  std::vector<int64_t> sentence = {0, 1, 2};  // of each row
  at::Tensor read;                            // [rows, positions, 24]
  const std::vector<std::vector<int64_t>> selections = {
      {0, 1, 2}, {0, 0, 1, 2, 2}, {1, 0, 2, 4, 3}, {0, 2, 3, 4}, {2, 3, 1}, {0, 1, 2}};
  for (int64_t t = 0; t < kSteps; ++t) {
    if (t < static_cast<int64_t>(selections.size())) {
      const std::vector<int64_t>& rows = selections[static_cast<size_t>(t)];
      cache.select(torch::tensor(rows, torch::kLong));
      std::vector<int64_t> now;
      for (const int64_t row : rows) now.push_back(sentence[static_cast<size_t>(row)]);
      sentence = now;
      if (read.defined()) read = read.index_select(0, torch::tensor(rows, torch::kLong));
    }
    const int64_t n = static_cast<int64_t>(sentence.size());
    const at::Tensor x = torch::randn({n, 1, 24}), of = torch::tensor(sentence, torch::kLong);
    read = read.defined() ? at::cat({read, x}, 1) : x;
    const at::Tensor whole =
        model->decoder->forward(read, memory.index_select(0, of), {.structure = Causal{}},
                                {.key_lengths = lengths.index_select(0, of)});
    EXPECT_TRUE(close(model->decoder->step(x, cache), whole.narrow(1, t, 1))) << "step " << t;
  }
}

TEST(MultiHead, AStepSeesWhatItsRowsSeeInTheWhole) {
  torch::manual_seed(6);
  MultiHead module(MultiHeadOptions{.width = 12, .heads = 3});
  module->eval();
  const torch::NoGradGuard no_grad;
  const at::Tensor x = torch::randn({2, 9, 12});
  const Structure all[] = {Causal{}, Causal{} & Window{.left = 2}, Strided{3}, Prefix{4},
                           Causal{Alignment::kBottomRight}};
  for (const Structure& structure : all) {
    const at::Tensor whole = module->heads(x, x, x, {.structure = structure});
    StepCache cache;
    for (int64_t at = 0, n = 1; at < 9; at += n, n = std::min<int64_t>(n + 1, 9 - at)) {
      const at::Tensor some =
          module->step_heads(x.narrow(1, at, n), cache, {.structure = structure});
      // A prefix is seen by the rows before its end when it is there.
      if (structure.all_of[0].index() != Structure(Prefix{}).all_of[0].index() || at >= 4) {
        EXPECT_TRUE(close(some, whole.narrow(1, at, n))) << "position " << at;
      }
    }
    EXPECT_EQ(cache.length(), 9);
  }
}

TEST(MultiHead, EqualsALoopOverHeads) {
  torch::manual_seed(5);
  MultiHead module(MultiHeadOptions{.width = 12, .heads = 3});
  const at::Tensor x = torch::randn({2, 5, 12});
  const auto p = module->named_parameters();
  const std::vector<at::Tensor> qkv =
      at::linear(x, p["in_proj_weight"], p["in_proj_bias"]).chunk(3, -1);
  std::vector<at::Tensor> heads;
  for (int64_t h = 0; h < 3; ++h) {
    const at::Tensor q = qkv[0].narrow(-1, 4 * h, 4), k = qkv[1].narrow(-1, 4 * h, 4),
                     v = qkv[2].narrow(-1, 4 * h, 4);
    heads.push_back(at::matmul(at::softmax(at::matmul(q, k.transpose(1, 2)) / 2.0, -1), v));
  }
  EXPECT_TRUE(close(module->forward(x),
                    at::linear(at::cat(heads, -1), p["out_proj.weight"], p["out_proj.bias"])));
}

TEST(MultiHead, DifferentWidthsLoadLibtorchsWeights) {
  torch::manual_seed(6);
  MultiHead ours(MultiHeadOptions{.width = 8, .heads = 2, .key_width = 5, .value_width = 5});
  torch::nn::MultiheadAttention theirs(torch::nn::MultiheadAttentionOptions(8, 2).kdim(5).vdim(5));
  copy_weights(*theirs, *ours);
  const at::Tensor q = torch::randn({2, 3, 8}), k = torch::randn({2, 6, 5}),
                   v = torch::randn({2, 6, 5});
  const at::Tensor expected =
      std::get<0>(theirs->forward(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)));
  EXPECT_TRUE(close(ours->forward(q, k, v), expected.transpose(0, 1)));
}

TEST(MultiHead, KeepAndDropAreOpposites) {
  torch::manual_seed(7);
  MultiHead module(MultiHeadOptions{.width = 8, .heads = 2});
  const at::Tensor x = torch::randn({1, 4, 8}), mask = torch::rand({1, 1, 4, 4}) > 0.3;
  EXPECT_TRUE(close(module->self_attention(x, {.structure = keep(mask)}),
                    module->self_attention(x, {.structure = drop(mask.logical_not())}), 0));
  EXPECT_THROW(drop(torch::zeros({4, 4})), InvalidArgument);
}

TEST(MultiHead, RefusesHeadsThatDoNotDivide) {
  EXPECT_THROW(MultiHead(MultiHeadOptions{.width = 10, .heads = 3}), InvalidArgument);
}

TEST(MultiHead, WeightsSumToOne) {
  MultiHead module(MultiHeadOptions{.width = 8, .heads = 2});
  const at::Tensor x = torch::randn({1, 4, 8});
  const at::Tensor rows = module->weights(x, x, {.structure = Causal{}}).weights.sum(-1);
  EXPECT_TRUE(close(rows, torch::ones_like(rows), 1e-6));
}

TEST(PositionEncoding, FollowsTheFormula) {
  const at::Tensor table = position_encoding(5, 7);
  for (int64_t position = 0; position < 5; ++position) {
    for (int64_t i = 0; i < 7; ++i) {
      const double angle =
          static_cast<double>(position) / std::pow(10000.0, static_cast<double>(i / 2 * 2) / 7.0);
      EXPECT_NEAR(table[position][i].item<double>(), i % 2 == 0 ? std::sin(angle) : std::cos(angle),
                  1e-6);
    }
  }
}

}  // namespace
}  // namespace fovea::nn
