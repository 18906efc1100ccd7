#include "systems/deep_sets/tag_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "data/packed.h"
#include "systems/deep_sets/model.h"

namespace fovea::systems::deep_sets {

TagScores::TagScores(int64_t tags, int64_t width, int64_t condition) {
  phi_ = register_module("phi", torch::nn::Embedding(tags, width));
  hidden_ = register_module("hidden", torch::nn::Linear(width + condition, 2 * width));
  out_ = register_module("out", torch::nn::Linear(2 * width, tags));
}

torch::Tensor TagScores::log_shares(const std::vector<Ids>& given, const torch::Tensor& z) {
  Ids all(given.size());
  std::iota(all.begin(), all.end(), 0);
  const auto device = out_->weight.device();
  const data::Packed sets = data::pack_tokens(given, all).to(device);
  torch::Tensor seen = sum_of(phi_(sets.values), sets.offsets);
  if (z.defined()) seen = torch::cat({seen, z}, 1);
  return out_(torch::relu(hidden_(seen)))
      .masked_fill(marked(given, out_->weight.size(0)).to(device, torch::kBool),
                   -std::numeric_limits<float>::infinity())
      .log_softmax(1);
}

TagModels::TagModels(int64_t tags, int64_t width, int64_t condition) {
  alone = register_module("alone", std::make_shared<TagScores>(tags, width, 0));
  if (condition > 0)
    conditioned =
        register_module("conditioned", std::make_shared<TagScores>(tags, width, condition));
}

ZScale ZScale::of(const Rows& rows) {
  const size_t width = rows.empty() ? 0 : rows[0]->size();
  const double count = static_cast<double>(rows.size());
  ZScale out{std::vector<double>(width, 0), std::vector<double>(width, 1)};
  for (size_t c = 0; c < width; ++c) {
    double square = 0;
    for (const auto* row : rows) out.mean[c] += (*row)[c] / count;
    for (const auto* row : rows) square += std::pow((*row)[c] - out.mean[c], 2) / count;
    if (square > 0) out.deviation[c] = std::sqrt(square);
  }
  return out;
}

torch::Tensor ZScale::scaled(const Rows& rows) const {
  torch::Tensor out =
      torch::empty({static_cast<int64_t>(rows.size()), static_cast<int64_t>(mean.size())});
  for (size_t i = 0; i < rows.size(); ++i)
    for (size_t c = 0; c < mean.size(); ++c)
      out.data_ptr<float>()[i * mean.size() + c] =
          static_cast<float>(((*rows[i])[c] - mean[c]) / deviation[c]);
  return out;
}

torch::Tensor marked(const std::vector<Ids>& sets, int64_t tags) {
  torch::Tensor out = torch::zeros({static_cast<int64_t>(sets.size()), tags});
  for (size_t i = 0; i < sets.size(); ++i)
    for (const int64_t id : sets[i]) out.data_ptr<float>()[static_cast<int64_t>(i) * tags + id] = 1;
  return out;
}

torch::Tensor missed(const torch::Tensor& log_shares, const std::vector<Ids>& hidden) {
  const torch::Tensor wanted = marked(hidden, log_shares.size(1)).to(log_shares.device());
  return -log_shares.masked_fill(wanted == 0, 0).sum() / wanted.sum().clamp_min(1);
}

double found_of(const torch::Tensor& log_shares, const Ids& hidden) {
  const auto count = static_cast<int64_t>(hidden.size());
  const torch::Tensor likeliest = std::get<1>(log_shares.topk(count)).cpu();
  int64_t found = 0;
  for (int64_t i = 0; i < count; ++i)
    found += std::find(hidden.begin(), hidden.end(), likeliest[i].item<int64_t>()) != hidden.end();
  return static_cast<double>(found) / static_cast<double>(count);
}

}  // namespace fovea::systems::deep_sets
