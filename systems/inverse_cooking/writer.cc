#include "systems/inverse_cooking/writer.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "data/formats/vocabulary.h"
#include "fovea/error.h"
#include "fovea/nn/transformer.h"

namespace fovea::systems::inverse_cooking {
namespace {

torch::nn::LayerNorm layer_norm(int64_t width) {
  return torch::nn::LayerNorm(torch::nn::LayerNormOptions({width}));
}

nn::Attention keys_of(const Memory& memory) { return {.key_lengths = memory.lengths}; }

// Which of the first keys are the item's own: [items, keys].
torch::Tensor kept(const Memory& memory) {
  const torch::Tensor place = torch::arange(memory.keys.size(1), memory.lengths.options());
  return place.unsqueeze(0) < memory.lengths.unsqueeze(1);
}

// One softmax over both: [K_i; K_r]. Padding is in none of them.
struct Joint {
  torch::Tensor keys;
  nn::Attention attention;
};
Joint joined(const Kitchen& kitchen) {
  Joint out{.keys = torch::cat({kitchen.picture.keys, kitchen.list.keys}, 1), .attention = {}};
  if (kitchen.picture.lengths.defined())
    out.attention.structure = nn::keep(torch::cat({kept(kitchen.picture), kept(kitchen.list)}, 1)
                                           .view({out.keys.size(0), 1, 1, out.keys.size(1)}));
  else  // padded ingredients stand behind the end of the keys
    out.attention.key_lengths =
        kitchen.list.lengths + static_cast<int>(kitchen.picture.keys.size(1));
  return out;
}

// [items, 1, 1]: 1 where the item has an ingredient.
torch::Tensor has_list(const Kitchen& kitchen) {
  return (kitchen.list.lengths > 0).to(kitchen.picture.keys.dtype()).view({-1, 1, 1});
}

// [items, longest] of these numbers, `pad` behind the end of each.
torch::Tensor padded(const std::vector<Ids>& rows, int64_t pad, int64_t least) {
  size_t longest = static_cast<size_t>(least);
  for (const Ids& row : rows) longest = std::max(longest, row.size());
  torch::Tensor out = torch::full(
      {static_cast<int64_t>(rows.size()), static_cast<int64_t>(longest)}, pad, torch::kInt64);
  for (size_t i = 0; i < rows.size(); ++i)
    std::copy(rows[i].begin(), rows[i].end(),
              out.data_ptr<int64_t>() + static_cast<int64_t>(i * longest));
  return out;
}

}  // namespace

FusedLayer::FusedLayer(const WriterShape& shape) : shape_(shape) {
  const auto attention = [&](const char* name) {
    return register_module(
        name, nn::MultiHead(nn::MultiHeadOptions{
                  .width = shape.width, .heads = shape.heads, .dropout = shape.dropout}));
  };
  self_attn_ = attention("self_attn");
  cross_ = attention("cross");
  norm1_ = register_module("norm1", layer_norm(shape.width));
  norm2_ = register_module("norm2", layer_norm(shape.width));
  norm3_ = register_module("norm3", layer_norm(shape.width));
  if (shape.fusion != Fusion::kConcatenated) cross_list_ = attention("cross_list");
  if (shape.fusion == Fusion::kPictureFirst || shape.fusion == Fusion::kListFirst)
    norm_list_ = register_module("norm_list", layer_norm(shape.width));
  linear1_ = register_module("linear1", torch::nn::Linear(shape.width, 4 * shape.width));
  linear2_ = register_module("linear2", torch::nn::Linear(4 * shape.width, shape.width));
}

torch::Tensor FusedLayer::dropped(const torch::Tensor& x) const {
  return torch::dropout(x, shape_.dropout, is_training());
}

torch::Tensor FusedLayer::after_self(const torch::Tensor& x) {
  return x + dropped(self_attn_->self_attention(norm1_(x), {.structure = Causal{}}));
}

Looks FusedLayer::looks_at(const Kitchen& kitchen) {
  // Keys and values are projected once, however many words ask.
  const auto look = [](nn::MultiHead attention, const torch::Tensor& keys, nn::Attention which) {
    return [attention, cache = attention->project(keys, keys),
            which](const torch::Tensor& asked) mutable {
      return attention->out_proj(attention->cached_heads(asked, cache, which));
    };
  };
  Looks out;
  if (shape_.fusion == Fusion::kConcatenated) {
    const Joint both = joined(kitchen);
    out.both = look(cross_, both.keys, both.attention);
    return out;
  }
  out.picture = look(cross_, kitchen.picture.keys, keys_of(kitchen.picture));
  out.list = look(cross_list_, kitchen.list.keys, keys_of(kitchen.list));
  out.has_list = has_list(kitchen);  // without a list, the picture alone
  return out;
}

torch::Tensor FusedLayer::after_cross(const torch::Tensor& x, const Looks& looks) {
  if (shape_.fusion == Fusion::kConcatenated) return x + dropped(looks.both(norm2_(x)));
  const torch::Tensor& there = looks.has_list;
  if (shape_.fusion == Fusion::kIndependent) {
    const torch::Tensor asked = norm2_(x);
    return x + dropped((looks.picture(asked) + there * looks.list(asked)) / (1 + there));
  }
  const auto picture = [&](const torch::Tensor& y) {
    return y + dropped(looks.picture(norm2_(y)));
  };
  const auto list = [&](const torch::Tensor& y) {
    return y + there * dropped(looks.list(norm_list_(y)));
  };
  return shape_.fusion == Fusion::kPictureFirst ? list(picture(x)) : picture(list(x));
}

torch::Tensor FusedLayer::after_words(const torch::Tensor& x) {
  return x + dropped(linear2_(dropped(torch::relu(linear1_(norm3_(x))))));
}

torch::Tensor FusedLayer::forward(torch::Tensor x, const Kitchen& kitchen) {
  return after_words(after_cross(after_self(x), looks_at(kitchen)));
}

Writing FusedLayer::begin(const Kitchen& kitchen) { return {{}, looks_at(kitchen)}; }

torch::Tensor FusedLayer::step(torch::Tensor x, Writing& writing) {
  x = x + dropped(self_attn_->out_proj(self_attn_->step_heads(norm1_(x), writing.said)));
  return after_words(after_cross(x, writing.looks));
}

torch::Tensor FusedLayer::weights_of(torch::Tensor& x, const Kitchen& kitchen) {
  const torch::Tensor y = after_self(x);
  const auto weights = [](nn::MultiHead& attention, const torch::Tensor& asked, const Memory& at) {
    return attention->weights(asked, at.keys, keys_of(at)).weights[0];
  };
  x = forward(x, kitchen);
  if (shape_.fusion == Fusion::kConcatenated) {
    const Joint both = joined(kitchen);
    return cross_->weights(norm2_(y), both.keys, both.attention).weights[0];
  }
  torch::Tensor to_picture = y, to_list = y;
  const torch::Tensor there = has_list(kitchen);
  const auto looked = [&](nn::MultiHead& attention, torch::nn::LayerNorm& norm, const Memory& at) {
    return attention(norm(y), at.keys, at.keys, keys_of(at));
  };
  if (shape_.fusion == Fusion::kPictureFirst) to_list = y + looked(cross_, norm2_, kitchen.picture);
  if (shape_.fusion == Fusion::kListFirst)
    to_picture = y + there * looked(cross_list_, norm_list_, kitchen.list);
  const torch::Tensor asked_list =
      shape_.fusion == Fusion::kIndependent ? norm2_(to_list) : norm_list_(to_list);
  const double half = kitchen.list.lengths.item<int>() > 0 ? 0.5 : 1;
  return torch::cat({half * weights(cross_, norm2_(to_picture), kitchen.picture),
                     half * weights(cross_list_, asked_list, kitchen.list)},
                    2);
}

Writer::Writer(const WriterShape& shape) : shape_(shape) {
  words_ = register_module(
      "words", torch::nn::Embedding(
                   torch::nn::EmbeddingOptions(shape.words, shape.width).padding_idx(data::kPad)));
  ingredients_ =
      register_module("ingredients", torch::nn::Embedding(shape.ingredients, shape.width));
  for (int64_t i = 0; i < shape.layers; ++i)
    layers_.push_back(
        register_module(fmt::format("layer{}", i + 1), std::make_shared<FusedLayer>(shape)));
  norm_ = register_module("norm", layer_norm(shape.width));
  out_ = register_module("out", torch::nn::Linear(shape.width, shape.words));
}

Memory Writer::list_of(const std::vector<LabelSet>& sets, torch::Device device) {
  std::vector<int> lengths;
  for (const LabelSet& set : sets) lengths.push_back(static_cast<int>(set.size()));
  return {.keys = ingredients_(padded(sets, 0, 1).to(device)),
          .lengths = torch::tensor(lengths, torch::kInt32).to(device)};
}

torch::Tensor Writer::embedded(const torch::Tensor& words, int64_t from) {
  const torch::Tensor x = words_(words) * std::sqrt(static_cast<double>(shape_.width)) +
                          nn::position_encoding(from + words.size(1), shape_.width)
                              .slice(0, from)
                              .to(words.device(), words_->weight.dtype());
  return torch::dropout(x, shape_.dropout, is_training());
}

torch::Tensor Writer::states(const torch::Tensor& words, const Kitchen& kitchen) {
  torch::Tensor x = embedded(words);
  for (const auto& layer : layers_) x = layer->forward(x, kitchen);
  return norm_(x);
}

torch::Tensor Writer::next_logits(const torch::Tensor& words, const Kitchen& kitchen) {
  return out_(states(words, kitchen));
}

torch::Tensor Writer::negative_log(const Kitchen& kitchen, const std::vector<Ids>& recipes,
                                   int64_t& count, double smoothing) {
  std::vector<Ids> given, wanted;
  count = 0;
  for (const Ids& recipe : recipes) {
    Ids& in = given.emplace_back(Ids{data::kBos});
    in.insert(in.end(), recipe.begin(), recipe.end());
    Ids& out = wanted.emplace_back(recipe);
    out.push_back(data::kEos);
    count += static_cast<int64_t>(out.size());
  }
  const auto device = kitchen.picture.keys.device();
  return torch::nn::functional::cross_entropy(
      next_logits(padded(given, data::kPad, 1).to(device), kitchen).flatten(0, 1),
      padded(wanted, data::kPad, 1).to(device).flatten(),
      torch::nn::functional::CrossEntropyFuncOptions()
          .ignore_index(data::kPad)
          .label_smoothing(smoothing)
          .reduction(torch::kSum));
}

std::vector<Ids> Writer::write(const Kitchen& kitchen) {
  const int64_t items = kitchen.picture.keys.size(0);
  std::vector<Ids> out(static_cast<size_t>(items));
  std::vector<bool> ended(static_cast<size_t>(items));
  std::vector<Writing> layers;
  for (const auto& layer : layers_) layers.push_back(layer->begin(kitchen));
  torch::Tensor last =
      torch::full({items, 1}, data::kBos, kitchen.picture.keys.options().dtype(torch::kInt64));
  for (int64_t step = 0; step < shape_.longest; ++step) {
    torch::Tensor x = embedded(last, step);
    for (size_t i = 0; i < layers.size(); ++i) x = layers_[i]->step(x, layers[i]);
    torch::Tensor logits = out_(norm_(x).select(1, 0));
    constexpr float kNever = -std::numeric_limits<float>::infinity();
    logits.slice(1, 0, data::kEos).fill_(kNever);  // no words
    logits.scatter_(1, last, kNever);              // no word follows itself
    const torch::Tensor next = logits.argmax(1).cpu();
    for (size_t i = 0; i < out.size(); ++i) {
      const int64_t word = next.const_data_ptr<int64_t>()[i];
      ended[i] = ended[i] || word == data::kEos;
      if (!ended[i]) out[i].push_back(word);
    }
    if (std::all_of(ended.begin(), ended.end(), [](bool done) { return done; })) break;
    last = next.unsqueeze(1).to(last.device());
  }
  return out;
}

std::vector<torch::Tensor> Writer::weights_of(const Kitchen& kitchen, const Ids& recipe) {
  if (recipe.empty()) return {};
  Ids given = {data::kBos};
  given.insert(given.end(), recipe.begin(), recipe.end() - 1);
  torch::Tensor x =
      embedded(torch::tensor(given, torch::kInt64).unsqueeze(0).to(kitchen.picture.keys.device()));
  std::vector<torch::Tensor> out;
  for (const auto& layer : layers_) out.push_back(layer->weights_of(x, kitchen));
  return out;
}

}  // namespace fovea::systems::inverse_cooking
