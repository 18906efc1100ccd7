// What is done to a call before libtorch's fused attention takes it; the attention itself needs a
// CUDA device (tests/python/test_cuda.py).
#include "torch/cuda/sdpa.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace fovea::operators {
namespace {

bool is_copied(const at::Tensor& x) {
  const at::Tensor y = with_whole_loads(x);
  EXPECT_TRUE(at::equal(x, y));
  return !y.is_alias_of(x);
}

TEST(Sdpa, RowsAtWholeLoadsStayWhereTheyAre) {
  const at::Tensor x = at::rand({2, 4, 8, 16});
  EXPECT_FALSE(is_copied(x));
  EXPECT_FALSE(is_copied(x.transpose(1, 2)));
  EXPECT_FALSE(is_copied(x.narrow(1, 0, 1).expand({2, 4, 8, 16})));
  EXPECT_FALSE(is_copied(x.narrow(3, 4, 8)));
  EXPECT_FALSE(is_copied(x.to(at::kBFloat16)));
}

TEST(Sdpa, RowsBetweenLoadsAreCopied) {
  const at::Tensor x = at::rand({2, 4, 8, 18});
  EXPECT_TRUE(is_copied(x.narrow(3, 0, 16)));                                           // rows
  EXPECT_TRUE(is_copied(at::rand({2, 4, 8, 16}).narrow(3, 1, 8)));                      // the start
  EXPECT_TRUE(is_copied(at::rand({2, 4, 8, 20}).to(at::kHalf).narrow(3, 0, 16)));       // 40 bytes
  EXPECT_TRUE(is_copied(at::rand({8 * 17}).as_strided({2, 4, 2, 8}, {68, 17, 8, 1})));  // heads
}

// Of a width that no copy brings to whole loads: libtorch takes another kernel.
TEST(Sdpa, WidthsThatFillNoLoadAreLeftAlone) {
  EXPECT_FALSE(is_copied(at::rand({2, 4, 8, 6}).narrow(3, 0, 5)));
  EXPECT_FALSE(is_copied(at::rand({2, 4, 8, 3})));
}

}  // namespace
}  // namespace fovea::operators
