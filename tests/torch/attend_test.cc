#include "fovea/attend.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace fovea {
namespace {

at::Tensor randn(at::IntArrayRef sizes) { return at::randn(sizes, at::kDouble); }

TEST(Attend, IsScaledDotProductAttentionByDefault) {
  const auto q = randn({2, 4, 5, 8}), k = randn({2, 4, 7, 8}), v = randn({2, 4, 7, 3});
  EXPECT_TRUE(
      at::allclose(attend(q, k, v), at::scaled_dot_product_attention(q, k, v), 1e-12, 1e-12));
}

TEST(Attend, CompilesAsTheDesignWritesIt) {
  const auto q = randn({6, 2, 8}), k = randn({9, 2, 8}), v = randn({9, 2, 4}), weight = randn({8});
  const auto query_offsets = at::tensor({0, 2, 6}, at::kInt),
             key_offsets = at::tensor({0, 4, 9}, at::kInt);
  auto out = fovea::attend(q, k, v,
                           {.score = fovea::Additive{weight},
                            .normaliser = fovea::Sparsemax{},
                            .structure = fovea::Ragged{query_offsets, key_offsets}});
  EXPECT_EQ(out.sizes(), at::IntArrayRef({6, 2, 4}));
  const auto second = fovea::attend(
      q.slice(0, 2, 6).transpose(0, 1).unsqueeze(0), k.slice(0, 4, 9).transpose(0, 1).unsqueeze(0),
      v.slice(0, 4, 9).transpose(0, 1).unsqueeze(0),
      {.score = fovea::Additive{weight}, .normaliser = fovea::Sparsemax{}});
  EXPECT_TRUE(at::allclose(out.slice(0, 2, 6), second.squeeze(0).transpose(0, 1), 1e-12, 1e-12));
}

}  // namespace
}  // namespace fovea
