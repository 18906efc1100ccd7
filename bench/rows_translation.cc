// The Transformer whole: a training step beside torch::nn::Transformer with the same weights, and decoding beside a decoder that reads its
// whole prefix again for every token.
#include <torch/torch.h>

#include "bench/row.h"
#include "fovea/nn/beam_search.h"
#include "fovea/nn/transformer.h"

namespace fovea::bench {
namespace {

struct Size {
  int64_t batch, length, width, heads, hidden, layers;
};

nn::Transformer make_ours(const Size& s) {
  return nn::Transformer(nn::TransformerOptions{.layer = {.width = s.width, .heads = s.heads, .hidden = s.hidden, .dropout = 0},
                                                .encoder_layers = s.layers, .decoder_layers = s.layers});
}

// Its names are ours, so the weights go over by name.
torch::nn::Transformer make_peer(const Size& s, nn::Transformer ours) {
  torch::nn::Transformer peer(torch::nn::TransformerOptions(s.width, s.heads, s.layers, s.layers).dim_feedforward(s.hidden).dropout(0.0));
  const torch::NoGradGuard no_grad;
  const auto weights = ours->named_parameters();
  for (auto& parameter : peer->named_parameters()) parameter.value().copy_(weights[parameter.key()]);
  peer->eval();
  ours->eval();
  return peer;
}

Tensors by_name(const torch::nn::Module& module, const std::vector<std::string>& names) {
  const auto all = module.named_parameters();
  Tensors out;
  for (const std::string& name : names) out.push_back(all[name]);
  return out;
}

at::Tensor causal_mask(int64_t length) { return torch::nn::TransformerImpl::generate_square_subsequent_mask(length); }

// Products with weights alone, 2 FLOPs a weight and token, thrice for a step: 42 GFLOP at this size; attention adds under 2 %.
Row training_row() {
  const Size s{.batch = 64, .length = 20, .width = 256, .heads = 8, .hidden = 1024, .layers = 3};
  const double weights = static_cast<double>(s.layers * (12 * s.width * s.width + 4 * s.width * s.hidden));
  Work work;
  work.flops = 3 * 2.0 * static_cast<double>(s.batch * s.length) * weights;
  return {.name = "transformer/64x20x256/3+3/step",
          .pass = Pass::kForwardBackward,
          .work = work,
          .make =
              [=] {
                torch::manual_seed(1);
                nn::Transformer ours = make_ours(s);
                torch::nn::Transformer peer = make_peer(s, ours);
                std::vector<std::string> names;
                for (const auto& parameter : ours->named_parameters()) names.push_back(parameter.key());
                const at::Tensor source = normal({s.batch, s.length, s.width}, 1).detach(), target = normal({s.batch, s.length, s.width}, 2).detach();
                const at::Tensor gradient = normal({s.batch, s.length, s.width}, 3).detach(), mask = causal_mask(s.length);
                const at::Tensor first = source.transpose(0, 1).contiguous(), second = target.transpose(0, 1).contiguous();
                return Instance{
                    .ours = {"fovea", runner(Pass::kForwardBackward, by_name(*ours, names), gradient,
                                             [=]() mutable { return ours->forward(source, target); })},
                    .peers = {{"nn::Transformer", runner(Pass::kForwardBackward, by_name(*peer, names), gradient, [=]() mutable {
                                 return peer->forward(first, second, {}, mask).transpose(0, 1);
                               })}},
                    // Of eight million ReLUs a few stand so near 0 that rounding opens them here and not there, and a term of 1280 is gone.
                    .tolerance = 0.1};
              },
          .figures = {times_peer_at_least(1.25)}};
}

// What both decoders share: the table that tokens are embedded and predicted with.
struct Vocabulary {
  at::Tensor table, positions;
  at::Tensor embed(const at::Tensor& tokens, int64_t first) const {
    return at::embedding(table, tokens) + positions.slice(0, first, first + tokens.size(1));
  }
  at::Tensor predict(const at::Tensor& hidden) const { return at::log_softmax(at::linear(hidden, table), -1); }
};

class Cached : public nn::StepModel {
 public:
  Cached(nn::Transformer model, const Vocabulary& vocabulary, const at::Tensor& source)
      : model_(std::move(model)), vocabulary_(vocabulary), caches_(model_->decoder->start(model_->encoder->forward(source))) {}
  void select(const at::Tensor& rows) override { nn::reorder(caches_, rows); }
  nn::StepOutput step(const at::Tensor& tokens) override {
    return {vocabulary_.predict(model_->decoder->step(vocabulary_.embed(tokens.unsqueeze(1), position_++), caches_, {}).squeeze(1)), {}};
  }

 private:
  nn::Transformer model_;
  const Vocabulary& vocabulary_;
  std::vector<nn::DecoderCache> caches_;
  int64_t position_ = 0;
};

class Recomputed : public nn::StepModel {
 public:
  Recomputed(torch::nn::Transformer model, const Vocabulary& vocabulary, const at::Tensor& source)
      : model_(std::move(model)), vocabulary_(vocabulary) {
    memory_ = model_->encoder.forward(source.transpose(0, 1));
  }
  void select(const at::Tensor& rows) override {
    memory_ = memory_.index_select(1, rows);
    if (prefix_.defined()) prefix_ = prefix_.index_select(0, rows);
  }
  nn::StepOutput step(const at::Tensor& tokens) override {
    prefix_ = prefix_.defined() ? at::cat({prefix_, tokens.unsqueeze(1)}, 1) : tokens.unsqueeze(1);
    const at::Tensor hidden = model_->decoder.forward(vocabulary_.embed(prefix_, 0).transpose(0, 1), memory_, causal_mask(prefix_.size(1)));
    return {vocabulary_.predict(hidden[-1]), {}};
  }

 private:
  torch::nn::Transformer model_;
  const Vocabulary& vocabulary_;
  at::Tensor memory_, prefix_;
};

// Every sentence as long as its cap: what is decoded does not depend on untrained weights.
Row decoding_row(int64_t beam) {
  const Size s{.batch = 64, .length = 16, .width = 128, .heads = 4, .hidden = 256, .layers = 4};
  return {.name = "transformer/64x16x128/4+4/" + std::string(beam == 1 ? "greedy" : "beam-" + std::to_string(beam)),
          .pass = Pass::kForward,
          .work = {},
          .make =
              [=] {
                torch::manual_seed(1);
                nn::Transformer ours = make_ours(s);
                torch::nn::Transformer peer = make_peer(s, ours);
                const auto vocabulary = std::make_shared<Vocabulary>(
                    Vocabulary{normal({8000, s.width}, 5).detach() / 11.3, nn::position_encoding(64, s.width)});
                const at::Tensor source = normal({s.batch, s.length, s.width}, 1).detach();
                const auto decode = [=](auto make_steps) {
                  return [=]() -> Tensors {
                    const at::NoGradGuard no_grad;
                    const auto steps = make_steps();
                    const auto found = nn::beam_search(*steps, std::vector<int64_t>(static_cast<size_t>(s.batch), s.length),
                                                       {.beam = beam, .never = {0, 2, 3}});
                    std::vector<double> scores;
                    for (const nn::SearchResult& one : found) scores.push_back(one.n_best[0].log_probability);
                    return {at::tensor(scores)};
                  };
                };
                return Instance{.ours = {"fovea", decode([=] { return std::make_unique<Cached>(ours, *vocabulary, source); })},
                                .peers = {{"without a cache", decode([=] { return std::make_unique<Recomputed>(peer, *vocabulary, source); })}}};
              },
          .figures = {times_peer_at_least(3)}};
}

}  // namespace

std::vector<Row> translation_rows() { return {training_row(), decoding_row(1), decoding_row(4)}; }

}  // namespace fovea::bench
