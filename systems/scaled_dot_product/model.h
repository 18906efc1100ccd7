// Two layers of self-attention, and a classifier on the output at a word. In the first a word learns
// what stands around it, and where: “it” learns that somebody was tired. The second is the one the
// pictures show: with that knowledge “it” finds the thing it means. One layer alone could not: the
// score of “it” and “animal” would be the same however the sentence ends. The values of the second
// layer are the words themselves, so that only a look at the thing tells its name.
#pragma once

#include <torch/torch.h>

#include "data/formats/vocabulary.h"
#include "fovea/attend.h"
#include "systems/scaled_dot_product/sentences.h"

namespace fovea::systems::scaled_dot_product {

struct Model : torch::nn::Module {
  Model(int64_t vocabulary, int64_t width, int64_t key_width) : scale_width(key_width) {
    embedding = register_module(
        "embedding", torch::nn::Embedding(
                         torch::nn::EmbeddingOptions(vocabulary, width).padding_idx(data::kPad)));
    const auto linear = [&](int64_t to) {
      return torch::nn::Linear(torch::nn::LinearOptions(width, to).bias(false));
    };
    place = register_module("place", torch::nn::Embedding(kPlaces, width));
    torch::NoGradGuard guard;
    place->weight.mul_(0.1);
    around_qk = register_module("around_qk", linear(2 * key_width));
    around_v = register_module("around_v", linear(width));
    q_proj = register_module("q_proj", linear(key_width));
    k_proj = register_module("k_proj", linear(key_width));
    v_proj = register_module("v_proj", linear(width));
    out =
        register_module("out", torch::nn::Linear(width, static_cast<int64_t>(kThings.size()) + 1));
  }
  // Each word by itself, which the second layer mixes, and with what stands around it, by which the
  // second layer looks; both [total, width].
  struct Words {
    torch::Tensor alone, around;
  };
  // The words of sentences, one after another [total].
  Words words(const torch::Tensor& ids, const torch::Tensor& offsets) {
    const torch::Tensor starts = offsets.slice(0, 0, -1).to(torch::kInt64);
    const torch::Tensor places =
        torch::arange(ids.size(0), starts.options()) -
        starts.repeat_interleave(offsets.diff().to(torch::kInt64));
    const torch::Tensor alone = embedding(ids);
    const torch::Tensor x = alone + place(places.clamp_max(kPlaces - 1));
    const auto both = around_qk(x).unsqueeze(1).chunk(2, 2);
    return {alone, x + attend(both[0].contiguous(), both[1].contiguous(), around_v(x).unsqueeze(1),
                              {.score = Dot{}, .structure = Ragged{offsets, offsets}})
                           .squeeze(1)};
  }
  // [total, width]: every word looks at every word of its own sentence.
  torch::Tensor mixed(const Words& x, const torch::Tensor& offsets) {
    return attend(q_proj(x.around).unsqueeze(1), k_proj(x.around).unsqueeze(1),
                  v_proj(x.alone).unsqueeze(1),
                  {.score = Dot{}, .structure = Ragged{offsets, offsets}})
        .squeeze(1);
  }
  const int64_t scale_width;
  static constexpr int64_t kPlaces = 64;  // later words share the last one
  torch::nn::Embedding embedding{nullptr}, place{nullptr};
  torch::nn::Linear around_qk{nullptr}, around_v{nullptr};  // of the first layer
  torch::nn::Linear q_proj{nullptr}, k_proj{nullptr}, v_proj{nullptr}, out{nullptr};
};

}  // namespace fovea::systems::scaled_dot_product
