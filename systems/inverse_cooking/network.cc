#include "systems/inverse_cooking/network.h"

#include <torch/torch.h>

#include <algorithm>

#include "data/formats/vocabulary.h"

namespace fovea::systems::inverse_cooking {

Network::Network(const NetworkShape& shape) {
  if (shape.title_words > 0)
    title_ = register_module("title", torch::nn::Embedding(torch::nn::EmbeddingOptions(
                                                               shape.title_words, shape.sight.width)
                                                               .padding_idx(data::kPad)));
  else
    encoder_ = register_module("encoder", std::make_shared<image_to_set::Encoder>(shape.sight));
  predictor_ =
      register_module("predictor", std::make_shared<image_to_set::SetPredictor>(shape.ingredients));
  if (shape.writes) writer_ = register_module("writer", std::make_shared<Writer>(shape.recipe));
}

Memory Network::pictures(const torch::Tensor& pixels) { return encoder_->forward(pixels); }

Memory Network::titles(const std::vector<Ids>& words_of) {
  size_t longest = 1;
  std::vector<int> lengths;
  for (const Ids& words : words_of) {
    longest = std::max(longest, words.size());
    lengths.push_back(static_cast<int>(words.size()));
  }
  const torch::Tensor ids = torch::zeros(
      {static_cast<int64_t>(words_of.size()), static_cast<int64_t>(longest)}, torch::kInt64);
  for (size_t i = 0; i < words_of.size(); ++i)
    std::copy(words_of[i].begin(), words_of[i].end(),
              ids.data_ptr<int64_t>() + static_cast<int64_t>(i * longest));
  const auto device = title_->weight.device();
  return {.keys = title_(ids.to(device)),
          .lengths = torch::tensor(lengths, torch::kInt32).to(device)};
}

}  // namespace fovea::systems::inverse_cooking
