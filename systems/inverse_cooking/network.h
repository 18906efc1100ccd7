// Both stages: what is looked at, which ingredients it holds, and the recipe.
#pragma once

#include <torch/nn/modules/embedding.h>

#include <memory>

#include "systems/image_to_set/encoder.h"
#include "systems/inverse_cooking/writer.h"

namespace fovea::systems::inverse_cooking {

struct NetworkShape {
  image_to_set::Sight sight;
  image_to_set::Shape ingredients;
  WriterShape recipe;
  int64_t title_words = 0;  // > 0: titles are looked at, not pictures
  bool writes = true;       // recipes have steps
};

class Network : public torch::nn::Module {
 public:
  explicit Network(const NetworkShape& shape);

  Memory pictures(const torch::Tensor& pixels);     // [items, 3, side, side]
  Memory titles(const std::vector<Ids>& words_of);  // numbers of words of each item
  image_to_set::SetPredictor& predictor() { return *predictor_; }
  Writer& writer() { return *writer_; }
  bool writes() const { return writer_ != nullptr; }

 private:
  std::shared_ptr<image_to_set::Encoder> encoder_;
  torch::nn::Embedding title_{nullptr};
  std::shared_ptr<image_to_set::SetPredictor> predictor_;
  std::shared_ptr<Writer> writer_;
};

}  // namespace fovea::systems::inverse_cooking
