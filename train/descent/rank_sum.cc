#include "train/descent/rank_sum.h"

#include <torch/torch.h>

namespace fovea::train {
namespace {

int64_t rounded_up(int64_t size, int64_t slices) { return (size + slices - 1) / slices * slices; }

// A tensor of one dimension, with any content: one of before that nobody holds any more, if there is one.
// Every step needs the same sizes, and pages that malloc gives back to the kernel after a step and gets
// again must be cleared: of four ranks they were three of four page faults.
torch::Tensor spare(int64_t size, const torch::TensorOptions& options) {
  thread_local std::vector<torch::Tensor> kept;
  for (const torch::Tensor& one : kept) {
    const bool held = one.use_count() > 1 || one.storage().use_count() > 1;
    if (!held && one.numel() == size && one.dtype() == options.dtype() &&
        one.device() == options.device())
      return one;
  }
  return kept.emplace_back(torch::empty({size}, options));
}

}  // namespace

RankSum::RankSum(int64_t size, const Division& division, Ranks* ranks)
    : size_(size),
      padded_(ranks ? rounded_up(size, ranks->size()) : size),
      division_(division),
      ranks_(ranks) {}

torch::Tensor RankSum::room(const torch::TensorOptions& options) const {
  torch::Tensor out = spare(padded_, options);
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

void RankSum::combine(const std::string& what) {
  if (!ranks_ || !division_.ordered) return;
  ranks_->wait(started_, what);
  OrderedSum all;
  int64_t at = 0;
  for (int64_t rank = 0; rank < ranks_->size(); ++rank)
    for (auto node : nodes_of(parts_of_rank(division_.parts, rank, ranks_->size()))) {
      node.sum = received_.narrow(0, at, slice());
      at += slice();
      all.add(std::move(node));
    }
  sum_ = spare(padded_, received_.options());
  started_ = ranks_->gather(sum_, all.total());
}

torch::Tensor RankSum::take(const std::string& what) {
  if (ranks_)
    ranks_->wait(started_, what);
  else
    sum_ = own_.total();
  torch::Tensor out = sum_.narrow(0, 0, size_);
  own_.clear();
  started_.reset();
  sum_ = received_ = torch::Tensor();
  return out;
}

}  // namespace fovea::train
