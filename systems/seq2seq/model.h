// Sutskever et al. 2014, Cho et al. 2014: the whole source in one vector. Attention is compared
// with this system.
#pragma once

#include "fovea/nn/recurrent.h"
#include "translate/model.h"

namespace fovea::systems {

struct Seq2SeqConfig {
  int64_t embedding = 128, width = 256;
  double dropout = 0.1;
  bool reverse = true;  // read the source backwards, which helps (Sutskever et al.)
};

class Seq2SeqModel : public translate::Model {
 public:
  Seq2SeqModel(const Seq2SeqConfig& config, const translate::Vocabularies& vocabularies);

  at::Tensor logits(const translate::Batch& batch) override;
  std::unique_ptr<nn::StepModel> start(const translate::Batch& sources,
                                       translate::Want want) override;
  at::Tensor alignment(const translate::Batch&) override { return {}; }  // it attends to nothing
  std::vector<translate::AttentionMaps> maps(const translate::Batch&) override { return {}; }

 private:
  class Steps;
  at::Tensor encode(const translate::Batch& batch);  // [B, width]: the state at the last real token
  at::Tensor embed_target(const at::Tensor& tokens);

  Seq2SeqConfig config_;
  torch::nn::Embedding source_{nullptr}, target_{nullptr};
  nn::Recurrent encoder_{nullptr};
  torch::nn::GRU decoder_{nullptr};
  torch::nn::Linear output_{nullptr};
};

}  // namespace fovea::systems
