// A translation model of two stacks of layers between embeddings with positions, as the Transformer
// has them. A system writes its stacks; embedding, output, decoding and alignment follow.
#pragma once

#include <mutex>

#include "fovea/nn/layers.h"
#include "train/option_values.h"
#include "translate/model.h"

namespace fovea::translate {

// Whose cross attention is the alignment.
struct AlignmentHead {
  int64_t layer = -1;  // negative counts from the last
  int64_t head = -1;   // -1: the mean over heads

  void check(int64_t layers, int64_t heads) const;  // UsageError where there is none such
  bool is(int64_t one, int64_t layers) const { return (layer + layers) % layers == one; }
  // [.., heads, T, S] -> [.., T, S]
  at::Tensor of(const at::Tensor& weights) const;
};

struct StackConfig {
  int64_t width = 128;
  double embedding_dropout = 0.1;
  bool tie_embeddings = true;  // target embedding = output projection, and = source embedding where
                               // the vocabulary is shared
  AlignmentHead aligned;
};

// The options of all such models, and what they mean.
std::vector<Option> stack_options();
nn::LayerOptions layer_options(const OptionValues& options);
StackConfig stack_config(const OptionValues& options);

class StackModel : public Model {
 public:
  at::Tensor logits(const Batch& batch) final;
  std::unique_ptr<nn::StepModel> start(const Batch& sources, Want want) final;
  at::Tensor alignment(const Batch& batch) final;

 protected:
  explicit StackModel(const StackConfig& config) : config_(config) {}
  // To be called once, after the stacks are registered.
  void make_embeddings(const Vocabularies& vocabularies);

  // x [B, L, width]; lengths int [B], of the source.
  virtual at::Tensor encode(const at::Tensor& x, const at::Tensor& lengths) = 0;
  virtual at::Tensor decode(const at::Tensor& x, const at::Tensor& memory,
                            const at::Tensor& lengths) = 0;
  virtual nn::DecoderCache start_decoder(const at::Tensor& memory, const at::Tensor& lengths) = 0;
  // One new position x [rows, 1, width]. `attention`, where not null, receives the weights of the
  // chosen layer on the source [rows, S].
  virtual at::Tensor step(const at::Tensor& x, nn::DecoderCache& cache, at::Tensor* attention) = 0;
  // The cross attention of all layers: [layers, B, heads, T, S].
  virtual at::Tensor cross_weights(const Batch& batch) = 0;

  at::Tensor embed_source(const Batch& batch) { return embed(source_, batch.source, 0); }
  at::Tensor embed_target(const at::Tensor& tokens, int64_t first_position = 0) {
    return embed(target_, tokens, first_position);
  }
  at::Tensor encoded(const Batch& batch) {
    return encode(embed_source(batch), batch.source_lengths);
  }
  const AlignmentHead& aligned() const { return config_.aligned; }

 private:
  class Steps;
  at::Tensor embed(torch::nn::Embedding& embedding, const at::Tensor& tokens,
                   int64_t first_position);
  at::Tensor project(const at::Tensor& hidden);  // to the target vocabulary
  // The first `count` or more, made once; several searches may ask at a time.
  at::Tensor positions(int64_t count, const at::Device& device);

  StackConfig config_;
  double scale_ = 1;      // sqrt(width), on embeddings at the input only
  at::Tensor positions_;  // grown as needed
  std::mutex growing_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  torch::nn::Linear output_{nullptr};
};

}  // namespace fovea::translate
