// Scores of tags that a set may lack, Zaheer et al. 2017 (tagging): s(x | X, z) = ρ([Σ φ(x); z]), one number for each tag.
#pragma once

#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include <memory>
#include <vector>

namespace fovea::systems::deep_sets {

using Ids = std::vector<int64_t>;

class TagScores : public torch::nn::Module {
 public:
  TagScores(int64_t tags, int64_t width, int64_t condition);
  // log of the shares of the tags that are not given, [sets, tags]; -infinity for those given. z [sets,
  // condition]; undefined: none.
  torch::Tensor log_shares(const std::vector<Ids>& given, const torch::Tensor& z);

 private:
  torch::nn::Embedding phi_{nullptr};
  torch::nn::Linear hidden_{nullptr}, out_{nullptr};
};

// One that sees z, and one that sees the set alone; without z only the second.
struct TagModels : torch::nn::Module {
  TagModels(int64_t tags, int64_t width, int64_t condition);
  TagScores& best() const { return conditioned ? *conditioned : *alone; }
  std::shared_ptr<TagScores> conditioned, alone;
};

// Numbers z with mean 0 and deviation 1 in training.
struct ZScale {
  using Rows = std::vector<const std::vector<float>*>;
  std::vector<double> mean, deviation;
  static ZScale of(const Rows& rows);
  torch::Tensor scaled(const Rows& rows) const;  // [sets, numbers]; no column without z
};

// [sets, tags]: 1 for the tags of a set.
torch::Tensor marked(const std::vector<Ids>& sets, int64_t tags);
// The mean of -log share over the hidden tags of all sets.
torch::Tensor missed(const torch::Tensor& log_shares, const std::vector<Ids>& hidden);
// Of the hidden tags, the share that is among the likeliest, as many as are hidden. log_shares [tags].
double found_of(const torch::Tensor& log_shares, const Ids& hidden);

}  // namespace fovea::systems::deep_sets
