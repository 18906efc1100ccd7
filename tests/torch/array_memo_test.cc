// What is known of a graph's arrays, so that they are checked once.
#include "torch/array_memo.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace fovea {
namespace {

TEST(ArrayMemo, KnowsArraysUntilTheyChangeOrGo) {
  ArrayMemo<int> memo;
  at::Tensor x = at::arange(4), y = at::arange(3);
  EXPECT_FALSE(memo.find({x, y}, {1}));
  memo.keep({x, y}, {1}, 7);
  EXPECT_EQ(memo.find({x, y}, {1}), 7);
  EXPECT_EQ(memo.find({x.view({4}), y}, {1}), 7) << "another tensor of the same numbers in place";
  EXPECT_FALSE(memo.find({x, y}, {2}));
  EXPECT_FALSE(memo.find({y, x}, {1}));
  EXPECT_FALSE(memo.find({x.slice(0, 0, 3), y}, {1}));
  EXPECT_FALSE(memo.find({x.clone(), y}, {1}));
  x[2] = 5;
  EXPECT_FALSE(memo.find({x, y}, {1})) << "changed";
  memo.keep({x, y}, {1}, 8);
  x = at::Tensor();
  EXPECT_FALSE(memo.find({at::arange(4), y}, {1})) << "gone, perhaps with another in its place";
}

}  // namespace
}  // namespace fovea
