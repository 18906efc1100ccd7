// IBM model 1 with vectors for words and a prior about the diagonal (Brown et al. 1993; Dyer,
// Chahuneau & Smith 2013; Rios, Aziz & Sima'an 2018).
//
//   p(y_t | x) = sum_j p(j | t) p(y_t | x_j),   p(y | x_j) = softmax_y(w_y . h_j + b_y)
//
// Its posterior over j is attention: the query is the target word's w_y, the key the source word's
// h_j, the bias log p(j | t) - log Z_j, the normaliser softmax; and the log-likelihood is
// attention's log-sum-exp. Key 0 is the empty word.
#include <ATen/ATen.h>

#include <cmath>

#include "fovea/attend.h"
#include "systems/alignment/aligner.h"
#include "translate/embedding.h"

namespace fovea::systems {
namespace {

constexpr double kNull = 0.08;           // prior of the empty word (Dyer et al.)
constexpr double kFirstSharpness = 4.0;  // of the prior about the diagonal, which is learned

class Neural : public Aligner {
 public:
  Neural(int64_t width, double dropout, const translate::Vocabularies& vocabularies)
      : dropout_(dropout) {
    target_ = register_module(
        "target_embedding", translate::token_embedding(vocabularies.target, width,
                                                       1 / std::sqrt(static_cast<double>(width))));
    // With one vocabulary there is one table: words with the same spelling start with the same
    // vector.
    source_ = vocabularies.shared ? target_
                                  : register_module("source_embedding",
                                                    translate::token_embedding(
                                                        vocabularies.source, width,
                                                        1 / std::sqrt(static_cast<double>(width))));
    to_key_ = register_parameter("to_key", at::eye(width));
    null_ = register_parameter("null", at::randn({width}) * 0.1);
    bias_ = register_parameter("bias", at::zeros({vocabularies.target}));
    sharpness_ = register_parameter("sharpness", at::full({}, kFirstSharpness));
  }

  at::Tensor loss(const translate::Batch& batch, double) override {
    const Look look = look_at(batch);
    const at::Tensor lse = attend_full(look.query, look.key, look.key.narrow(-1, 0, 1),
                                       look.choices, {.key_lengths = batch.source_lengths})
                               .lse.squeeze(1);
    const at::Tensor word =
        batch.target_out.gt(translate::kEnd).logical_or(batch.target_out.eq(translate::kUnknown));
    const at::Tensor log_likelihood =
        (lse + at::embedding(bias_.unsqueeze(1), batch.target_out).squeeze(-1)) * word;
    return -log_likelihood.sum() / word.sum().clamp_min(1);
  }

  at::Tensor weights(const translate::Batch& batch) override {
    const Look look = look_at(batch);
    const at::Tensor all = fovea::weights(look.query, look.key, look.choices, {},
                                          {.key_lengths = batch.source_lengths})
                               .weights.squeeze(1);
    return all.narrow(2, 1, batch.source.size(1));  // without the empty word
  }
  bool has_null() const override { return true; }

 private:
  struct Look {
    at::Tensor query,
        key;  // [B, 1, T, width], [B, 1, 1 + S, width]; EOS is cut off by the key lengths
    Choices choices;
  };
  Look look_at(const translate::Batch& batch) {
    const int64_t n = batch.source.size(0);
    // Vectors and normalisers of the words that occur, each once.
    const auto [types, place] = at::_unique(batch.source, /*sorted=*/true, /*return_inverse=*/true);
    const at::Tensor words = at::dropout(source_(types), dropout_, is_training());
    const at::Tensor rows = at::cat({null_.unsqueeze(0), at::matmul(words, to_key_)});
    const at::Tensor log_z = at::logsumexp(at::linear(rows, target_->weight, bias_), -1);
    const at::Tensor index =
        at::cat({at::zeros({n, 1}, place.options()), place + 1}, 1);  // [B, 1 + S]
    Look look;
    look.query = target_(batch.target_out).unsqueeze(1);
    look.key = at::embedding(rows, index).unsqueeze(1);
    look.choices.score = Score(Dot{1.0}).bias(
        (log_prior(batch) - at::embedding(log_z.unsqueeze(1), index).squeeze(-1).unsqueeze(1))
            .unsqueeze(1));
    return look;
  }
  // [B, T, 1 + S].
  at::Tensor log_prior(const translate::Batch& batch) {
    const auto options = target_->weight.options();
    const int64_t queries = batch.target_out.size(1), keys = batch.source.size(1);
    const at::Tensor sources = (batch.source_lengths.to(options) - 1).view({-1, 1, 1});
    const at::Tensor targets =
        batch.target_out.gt(translate::kEnd).sum(1).to(options).clamp_min(1).view({-1, 1, 1});
    const at::Tensor j = at::arange(keys, options).view({1, 1, -1}),
                     t = at::arange(queries, options).view({1, -1, 1});
    const at::Tensor away = ((t + 0.5) / targets - (j + 0.5) / sources.clamp_min(1)).abs();
    const at::Tensor beyond = j >= sources.clamp_min(1);
    const at::Tensor spread =
        at::log_softmax((-sharpness_ * away).masked_fill(beyond, -INFINITY), -1)
            .masked_fill(beyond, 0);
    return at::cat({at::full({batch.source.size(0), queries, 1}, std::log(kNull), options),
                    spread + std::log(1 - kNull)},
                   2);
  }

  double dropout_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  at::Tensor to_key_, null_, bias_, sharpness_;
};

}  // namespace

std::shared_ptr<Aligner> make_neural(const OptionValues& o,
                                     const translate::Vocabularies& vocabularies) {
  return std::make_shared<Neural>(o.integer("width"), o.number("dropout"), vocabularies);
}

}  // namespace fovea::systems
