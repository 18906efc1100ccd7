// The sum over parts: its bits must not depend on who adds which parts.
#include "train/sums/ordered_sum.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <numeric>

namespace fovea::train {
namespace {

// Numbers of very different size, so that another order gives other bits.
std::vector<torch::Tensor> numbers(int64_t parts) {
  torch::manual_seed(3);
  std::vector<torch::Tensor> out;
  for (int64_t part = 0; part < parts; ++part)
    out.push_back(torch::randn({257}) * torch::pow(10.0, torch::randint(-6, 6, {257})));
  return out;
}

torch::Tensor sum_by_one(const std::vector<torch::Tensor>& all) {
  OrderedSum sum;
  for (size_t part = 0; part < all.size(); ++part)
    sum.add(static_cast<int64_t>(part), all[part].clone());
  return sum.total();
}

torch::Tensor sum_by_ranks(const std::vector<torch::Tensor>& all, int64_t ranks) {
  OrderedSum together;
  for (int64_t rank = 0; rank < ranks; ++rank) {
    const PartRange range = parts_of_rank(static_cast<int64_t>(all.size()), rank, ranks);
    OrderedSum own;
    for (int64_t part = range.first; part < range.end; ++part)
      own.add(part, all[static_cast<size_t>(part)].clone());
    const auto planned = nodes_of(range);
    EXPECT_EQ(planned.size(), own.nodes().size());
    for (size_t i = 0; i < planned.size(); ++i) {
      EXPECT_EQ(planned[i].level, own.nodes()[i].level);
      EXPECT_EQ(planned[i].place, own.nodes()[i].place);
      together.add(own.nodes()[i]);
    }
  }
  return together.total();
}

TEST(OrderedSum, HasTheSameBitsForAnyNumberOfRanks) {
  for (const int64_t parts : {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16}) {
    const auto all = numbers(parts);
    const torch::Tensor expected = sum_by_one(all);
    for (int64_t ranks = 1; ranks <= parts; ++ranks)
      EXPECT_TRUE(torch::equal(sum_by_ranks(all, ranks), expected))
          << parts << " parts, " << ranks << " ranks";
  }
}

TEST(OrderedSum, IsTheSum) {
  const auto all = numbers(7);
  torch::Tensor expected = torch::zeros({257}, torch::kFloat64), size = expected.clone();
  for (const torch::Tensor& one : all) {
    expected += one;
    size += one.abs();
  }
  const torch::Tensor wrong = (sum_by_one(all).to(torch::kFloat64) - expected).abs();
  EXPECT_TRUE((wrong <= 1e-6 * size).all().item<bool>());
}

// What the test above would not notice: another order does give other bits for these numbers.
TEST(OrderedSum, OrderMatters) {
  const auto all = numbers(8);
  torch::Tensor in_turn = all[0].clone();
  for (size_t part = 1; part < all.size(); ++part) in_turn += all[part];
  EXPECT_FALSE(torch::equal(in_turn, sum_by_one(all)));
}

TEST(Parts, CoverABatchOnce) {
  std::vector<int64_t> items(11);
  std::iota(items.begin(), items.end(), 0);
  for (const int64_t parts : {1, 2, 4, 11, 13}) {
    std::vector<int64_t> seen;
    for (int64_t part = 0; part < parts; ++part) {
      const auto some = items_of_part(items, part, parts);
      EXPECT_LE(some.size(), static_cast<size_t>(11 / parts + 1));
      seen.insert(seen.end(), some.begin(), some.end());
    }
    EXPECT_EQ(seen, items);
  }
  for (const int64_t ranks : {1, 2, 3, 4}) {
    int64_t next = 0;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const PartRange range = parts_of_rank(4, rank, ranks);
      EXPECT_EQ(range.first, next);
      EXPECT_GE(range.count(), 1);
      next = range.end;
    }
    EXPECT_EQ(next, 4);
  }
}

}  // namespace
}  // namespace fovea::train
