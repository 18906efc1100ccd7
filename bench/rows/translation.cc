// The Transformer whole: a training step beside torch::nn::Transformer with the same weights, and
// decoding beside a decoder that reads its whole prefix again for every token.
#include <torch/torch.h>

#include "bench/rows/row.h"
#include "fovea/nn/beam_search.h"
#include "fovea/nn/transformer.h"

namespace fovea::bench {
namespace {

struct Size {
  int64_t batch, length, width, heads, hidden, layers;
};

nn::Transformer make_ours(const Size& s, double dropout) {
  return nn::Transformer(nn::TransformerOptions{.layer = {.width = s.width,
                                                          .heads = s.heads,
                                                          .hidden = s.hidden,
                                                          .dropout = dropout,
                                                          .attention_dropout = dropout},
                                                .encoder_layers = s.layers,
                                                .decoder_layers = s.layers});
}

// Its names are ours, so the weights go over by name.
torch::nn::Transformer make_peer(const Size& s, nn::Transformer ours, double dropout) {
  torch::nn::Transformer peer(torch::nn::TransformerOptions(s.width, s.heads, s.layers, s.layers)
                                  .dim_feedforward(s.hidden)
                                  .dropout(dropout));
  const torch::NoGradGuard no_grad;
  const auto weights = ours->named_parameters();
  for (auto& parameter : peer->named_parameters())
    parameter.value().copy_(weights[parameter.key()]);
  return peer;
}

Tensors by_name(const torch::nn::Module& module, const std::vector<std::string>& names) {
  const auto all = module.named_parameters();
  Tensors out;
  for (const std::string& name : names) out.push_back(all[name]);
  return out;
}

at::Tensor causal_mask(int64_t length) {
  return torch::nn::TransformerImpl::generate_square_subsequent_mask(length);
}

// A module's step with dropout switched off, to check: what is drawn differs from side to side.
template <class Module>
std::function<Tensors()> undropped(Module module, std::function<Tensors()> step) {
  return [=]() mutable {
    module->eval();
    Tensors results = step();
    module->train();
    return results;
  };
}

// Products with weights alone, 2 FLOPs a weight and token, thrice for a step: 42 GFLOP at this
// size; attention adds under 2 %. Forward and the gradients of all weights; the optimiser, which is
// libtorch's on both sides, is left out. Dropout as the modules have it by default, on attention
// weights, sublayers and inside the feed-forward nets, or none.
Row training_row(const std::string& name, double dropout, std::vector<Figure> figures) {
  const Size s{.batch = 64, .length = 20, .width = 256, .heads = 8, .hidden = 1024, .layers = 3};
  const double weights =
      static_cast<double>(s.layers * (12 * s.width * s.width + 4 * s.width * s.hidden));
  Work work;
  work.flops = 3 * 2.0 * static_cast<double>(s.batch * s.length) * weights;
  return {.name = "transformer/64x20x256/3+3/" + name,
          .pass = Pass::kForwardBackward,
          .work = work,
          .make =
              [=] {
                torch::manual_seed(1);
                nn::Transformer ours = make_ours(s, dropout);
                torch::nn::Transformer peer = make_peer(s, ours, dropout);
                std::vector<std::string> names;
                for (const auto& parameter : ours->named_parameters())
                  names.push_back(parameter.key());
                const at::Tensor source = normal({s.batch, s.length, s.width}, 1).detach(),
                                 target = normal({s.batch, s.length, s.width}, 2).detach();
                const at::Tensor gradient = normal({s.batch, s.length, s.width}, 3).detach(),
                                 mask = causal_mask(s.length);
                const at::Tensor first = source.transpose(0, 1).contiguous(),
                                 second = target.transpose(0, 1).contiguous();
                const auto our_step =
                    runner(Pass::kForwardBackward, by_name(*ours, names), gradient,
                           [=]() mutable { return ours->forward(source, target); });
                const auto their_step =
                    runner(Pass::kForwardBackward, by_name(*peer, names), gradient, [=]() mutable {
                      return peer->forward(first, second, {}, mask).transpose(0, 1);
                    });
                const auto timed = [](std::function<Tensors()> step) {
                  return [=]() -> Tensors {
                    step();
                    return {};
                  };
                };
                return Instance{.ours = {"fovea", timed(our_step)},
                                .peers = {{"nn::Transformer", timed(their_step)}},
                                // Of eight million ReLUs a few stand so near 0 that rounding opens
                                // them here and not there, and a term of 1280 is gone.
                                .tolerance = 0.1,
                                .ours_to_check = undropped(ours, our_step),
                                .expected = undropped(peer, their_step)};
              },
          .figures = std::move(figures)};
}

// What both decoders share: the table that tokens are embedded and predicted with.
struct Vocabulary {
  at::Tensor table, positions;
  at::Tensor embed(const at::Tensor& tokens, int64_t first) const {
    return at::embedding(table, tokens) + positions.slice(0, first, first + tokens.size(1));
  }
  at::Tensor predict(const at::Tensor& hidden) const { return at::linear(hidden, table); }
};
const std::vector<int64_t> kNever = {0, 2,
                                     3};  // PAD, BOS and EOS: every sentence is as long as its cap

class Cached : public nn::StepModel {
 public:
  Cached(nn::Transformer model, const Vocabulary& vocabulary, const at::Tensor& source)
      : model_(std::move(model)),
        vocabulary_(vocabulary),
        cache_(model_->decoder->start(model_->encoder->forward(source))) {}
  void select(const at::Tensor& rows) override { cache_.select(rows); }
  nn::StepOutput step(const at::Tensor& tokens) override {
    return {vocabulary_.predict(
                model_->decoder->step(vocabulary_.embed(tokens.unsqueeze(1), position_++), cache_)
                    .squeeze(1)),
            {}};
  }

 private:
  nn::Transformer model_;
  const Vocabulary& vocabulary_;
  nn::DecoderCache cache_;
  int64_t position_ = 0;
};

// What one writes with libtorch at hand: the whole prefix through the decoder for every token,
// log-softmax, top-k over a sentence's hypotheses. Returns the best log-probability of each
// sentence.
at::Tensor decode_plainly(torch::nn::Transformer model, const Vocabulary& vocabulary,
                          const at::Tensor& source, int64_t beam) {
  const at::NoGradGuard no_grad;
  const int64_t sentences = source.size(0), length = source.size(1),
                words = vocabulary.table.size(0);
  const at::Tensor never = at::tensor(kNever, at::kLong),
                   first_row = at::arange(sentences).unsqueeze(1) * beam;
  at::Tensor memory = model->encoder.forward(source.transpose(0, 1));
  at::Tensor tokens = at::full({sentences, 1}, 2, at::kLong), scores = at::zeros({sentences, 1});
  for (int64_t t = 0; t < length; ++t) {
    const at::Tensor hidden = model->decoder.forward(vocabulary.embed(tokens, 0).transpose(0, 1),
                                                     memory, causal_mask(t + 1))[-1];
    const at::Tensor log_p =
        at::log_softmax(vocabulary.predict(hidden), -1).index_fill_(1, never, -INFINITY);
    const auto [best, places] =
        (scores.unsqueeze(-1) + log_p.view({sentences, -1, words})).flatten(1).topk(beam, 1);
    scores = best;
    if (t == 0) {
      tokens = tokens.repeat_interleave(beam, 0);
      memory = memory.repeat_interleave(beam, 1);
    } else {
      tokens = tokens.index_select(0, (first_row + places.div(words, "floor")).flatten());
    }
    tokens = at::cat({tokens, places.remainder(words).view({-1, 1})}, 1);
  }
  return scores.select(1, 0);
}

Row decoding_row(int64_t beam) {
  const Size s{.batch = 64, .length = 16, .width = 128, .heads = 4, .hidden = 256, .layers = 4};
  return {
      .name = "transformer/64x16x128/4+4/" +
              std::string(beam == 1 ? "greedy" : "beam-" + std::to_string(beam)),
      .pass = Pass::kForward,
      .work = {},
      .make =
          [=] {
            torch::manual_seed(1);
            nn::Transformer ours = make_ours(s, 0);
            torch::nn::Transformer peer = make_peer(s, ours, 0);
            ours->eval();
            peer->eval();
            const auto vocabulary = std::make_shared<Vocabulary>(Vocabulary{
                normal({8000, s.width}, 5).detach() / 11.3, nn::position_encoding(64, s.width)});
            const at::Tensor source = normal({s.batch, s.length, s.width}, 1).detach();
            const auto decode = [=]() -> Tensors {
              const at::NoGradGuard no_grad;
              constexpr int64_t kTogether = 32;  // sentences
              std::vector<nn::SearchPart> parts;
              for (const at::Tensor& some : source.split(kTogether))
                parts.push_back(
                    {[=] { return std::make_unique<Cached>(ours, *vocabulary, some); },
                     std::vector<int64_t>(static_cast<size_t>(some.size(0)), s.length)});
              std::vector<float> scores;
              for (const auto& part : nn::beam_search(parts, {.beam = beam, .never = kNever}))
                for (const nn::SearchResult& one : part)
                  scores.push_back(static_cast<float>(one.n_best[0].log_probability));
              return {at::tensor(scores)};
            };
            return Instance{.ours = {"fovea", decode},
                            .peers = {{"without a cache", [=]() -> Tensors {
                                         return {decode_plainly(peer, *vocabulary, source, beam)};
                                       }}}};
          },
      .figures = {times_peer_at_least(3)}};
}

}  // namespace

std::vector<Row> translation_rows() {
  return {training_row("step", 0.1, {times_peer_at_least(1.25)}),
          training_row("step-without-dropout", 0, {}), decoding_row(1), decoding_row(4)};
}

}  // namespace fovea::bench
