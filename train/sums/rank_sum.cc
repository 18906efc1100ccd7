#include "train/sums/rank_sum.h"

#include <torch/torch.h>

namespace fovea::train {
RankSum::RankSum(const Addends& addends, const Division& division, Ranks* ranks)
    : size_(addends.count),
      padded_(ranks ? rounded_up(size_, ranks->size()) : size_),
      options_(addends.options),
      division_(division),
      ranks_(ranks) {}

torch::Tensor RankSum::room() {
  torch::Tensor out = spare(padded_, options_);
  out.narrow(0, size_, padded_ - size_).zero_();
  return out;
}

void RankSum::start() {
  if (!ranks_) return;
  if (division_.ordered) return start_ordered();
  sum_ = own_.total().to(torch::kCPU);
  started_ = ranks_->sum(sum_);
}

void RankSum::start_ordered() {
  std::vector<torch::Tensor> nodes;
  for (const OrderedSum::Node& node : own_.nodes()) nodes.push_back(node.sum.to(torch::kCPU));
  const int64_t count = static_cast<int64_t>(nodes.size()), size = ranks_->size();
  // The slice of each rank, one after the other, and in it that of each node.
  const torch::Tensor in =
      count == 1 ? nodes[0]
                 : torch::stack(nodes).view({count, size, slice()}).transpose(0, 1).contiguous();
  std::vector<int64_t> received, sent(static_cast<size_t>(size), count * slice());
  int64_t total = 0;
  for (int64_t rank = 0; rank < size; ++rank) {
    const auto theirs = nodes_of(parts_of_rank(division_.parts, rank, size));
    received.push_back(static_cast<int64_t>(theirs.size()) * slice());
    total += received.back();
  }
  received_ = spare(total, in.options());
  started_ = ranks_->exchange(received_, received, in.view({-1}), sent);
}

void RankSum::combine(double divisor, const std::string& what) {
  if (ranks_) ranks_->wait(started_, what);
  if (!ranks_ || !division_.ordered) {
    if (!ranks_) sum_ = own_.total();
    sum_.div_(divisor);
    return;
  }
  OrderedSum all;
  int64_t at = 0;
  for (int64_t rank = 0; rank < ranks_->size(); ++rank)
    for (auto node : nodes_of(parts_of_rank(division_.parts, rank, ranks_->size()))) {
      node.sum = received_.narrow(0, at, slice());
      at += slice();
      all.add(std::move(node));
    }
  sum_ = spare(padded_, received_.options());
  started_ = ranks_->gather(sum_, all.total().div_(divisor));
}

torch::Tensor RankSum::take(const std::string& what) {
  if (ranks_) ranks_->wait(started_, what);
  torch::Tensor out = sum_.narrow(0, 0, size_);
  own_.clear();
  started_.reset();
  sum_ = received_ = torch::Tensor();
  return out;
}

}  // namespace fovea::train
