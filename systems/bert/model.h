// The encoder with the heads that a task, or a folder of others, has.
#pragma once

#include <torch/nn.h>

#include "fovea/nn/bert.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea::systems::bert {

struct HeadsWanted {
  bool pooler = false;  // tanh(W h) of the first state; `next` and `classes` stand on it
  bool fill = false;    // words at [MASK]
  bool next = false;    // whether the second part follows the first: class 0, it does
  int64_t classes = 0;
  bool span = false;  // where an answer begins and ends
};

nn::BertOptions sizes_of(const OptionValues& options, int64_t vocabulary);

// What a run's configuration keeps of them, and back.
Json facts_of(const nn::BertOptions& sizes, const HeadsWanted& heads);
nn::BertOptions sizes_from(const Json& facts);
HeadsWanted heads_from(const Json& facts);

std::string activation_name(nn::HiddenActivation activation);  // Hugging Face's
std::optional<nn::HiddenActivation> activation_named(const std::string& name);

class BertModelImpl : public torch::nn::Module {
 public:
  BertModelImpl(const nn::BertOptions& sizes, const HeadsWanted& heads);

  const HeadsWanted& heads() const { return heads_; }
  torch::Tensor pooled(const torch::Tensor& states, const torch::Tensor& offsets);  // [B, width]
  // [places, vocabulary] at the rows `places` of the states.
  torch::Tensor words_at(const torch::Tensor& states, const torch::Tensor& places);
  // Unit vectors, the mean of each sequence's states: [B, width].
  torch::Tensor embeddings(const nn::BertInput& input);

  nn::Bert encoder{nullptr};
  torch::nn::Linear pooler{nullptr}, next{nullptr}, classifier{nullptr}, span{nullptr};
  nn::MaskedWords fill{nullptr};

 private:
  HeadsWanted heads_;
};
TORCH_MODULE(BertModel);

// Weights whose decay is zero: biases and layer norms.
bool has_no_decay(const std::string& name);

}  // namespace fovea::systems::bert
