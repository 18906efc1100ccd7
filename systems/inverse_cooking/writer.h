// The second stage: a Transformer that writes a recipe, looking at the picture and at the list of
// ingredients, Salvador, Drozdzal, Giró-i-Nieto & Romero 2019.
//
//   concatenated:  attend(x, [K_i; K_r], [V_i; V_r])          one softmax over regions and ingredients
//   independent:   (attend(x, K_i, V_i) + attend(x, K_r, V_r)) / 2
//   sequential:    attend to the one, then to the other
//
// Ingredients have no positions: their order does not matter.
#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "fovea/nn/decoder_cache.h"
#include "fovea/nn/multi_head.h"
#include "systems/image_to_set/model.h"
#include "train/named.h"

namespace fovea::systems::inverse_cooking {

using image_to_set::Memory;
using metrics::LabelSet;
using Ids = std::vector<int64_t>;

enum class Fusion : uint8_t { kConcatenated, kIndependent, kPictureFirst, kListFirst };
inline constexpr Named<Fusion, 4> kFusions{{{"concatenated", Fusion::kConcatenated},
                                            {"independent", Fusion::kIndependent},
                                            {"picture-first", Fusion::kPictureFirst},
                                            {"list-first", Fusion::kListFirst}}};

struct WriterShape {
  int64_t words = 0, ingredients = 0;
  Fusion fusion = Fusion::kConcatenated;
  int64_t width = 64, heads = 4, layers = 2, longest = 150;
  double dropout = 0;
};

// What the writer looks at: the regions of each item, and its ingredients.
struct Kitchen {
  Memory picture;
  Memory list;  // with lengths
};

// Attention to what does not change while words are written. Only those that the fusion needs are set.
struct Looks {
  using Look = std::function<torch::Tensor(const torch::Tensor& asked)>;
  Look both, picture, list;
  torch::Tensor has_list;  // [items, 1, 1]: 1 where the item has an ingredient
};

// What a layer keeps between two words.
struct Writing {
  nn::StepCache said;
  Looks looks;
};

class FusedLayer : public torch::nn::Module {
 public:
  explicit FusedLayer(const WriterShape& shape);
  torch::Tensor forward(torch::Tensor x, const Kitchen& kitchen);  // [items, words, width]
  // The same a word at a time: x [items, 1, width].
  Writing begin(const Kitchen& kitchen);
  torch::Tensor step(torch::Tensor x, Writing& writing);
  // The weights of one item, [heads, words, regions + ingredients], and the layer's output in `x`.
  torch::Tensor weights_of(torch::Tensor& x, const Kitchen& kitchen);

 private:
  torch::Tensor after_self(const torch::Tensor& x);
  torch::Tensor after_cross(const torch::Tensor& x, const Looks& looks);
  torch::Tensor after_words(const torch::Tensor& x);
  Looks looks_at(const Kitchen& kitchen);
  torch::Tensor dropped(const torch::Tensor& x) const;

  const WriterShape shape_;
  nn::MultiHead self_attn_{nullptr}, cross_{nullptr}, cross_list_{nullptr};
  torch::nn::LayerNorm norm1_{nullptr}, norm2_{nullptr}, norm_list_{nullptr}, norm3_{nullptr};
  torch::nn::Linear linear1_{nullptr}, linear2_{nullptr};
};

class Writer : public torch::nn::Module {
 public:
  explicit Writer(const WriterShape& shape);

  // The list's keys; sets may be empty.
  Memory list_of(const std::vector<LabelSet>& sets, torch::Device device);
  // [items, words, vocabulary]: what follows each of the words; BOS comes first.
  torch::Tensor next_logits(const torch::Tensor& words, const Kitchen& kitchen);
  // Sum over words of -log p of the recipes, each with its end; `count` gets their number.
  torch::Tensor negative_log(const Kitchen& kitchen, const std::vector<Ids>& recipes,
                             int64_t& count, double smoothing);
  // The likeliest word each time, never the one before it, until the end is said or the longest length
  // is reached.
  std::vector<Ids> write(const Kitchen& kitchen);
  // Of one item and its words: of each layer [heads, words, regions + ingredients]. With two attentions
  // each has half of the weight.
  std::vector<torch::Tensor> weights_of(const Kitchen& kitchen, const Ids& recipe);

 private:
  torch::Tensor embedded(const torch::Tensor& words,
                         int64_t from = 0);  // `from`: the place of the first
  torch::Tensor states(const torch::Tensor& words, const Kitchen& kitchen);

  const WriterShape shape_;
  torch::nn::Embedding words_{nullptr}, ingredients_{nullptr};
  std::vector<std::shared_ptr<FusedLayer>> layers_;
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear out_{nullptr};
};

}  // namespace fovea::systems::inverse_cooking
