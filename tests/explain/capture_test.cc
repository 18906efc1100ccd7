#include "explain/capture.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "fovea/error.h"

namespace fovea::explain {
namespace {

at::Tensor tensor(at::IntArrayRef size, int64_t seed) {
  at::manual_seed(seed);
  return at::randn(size);
}

TEST(Capture, KeepsNothingWhenNobodyLooks) {
  const at::Tensor query = tensor({1, 2, 3, 4}, 1), key = tensor({1, 2, 5, 4}, 2);
  capture("layer", query, key);
  const Capture looking;
  EXPECT_TRUE(looking.calls().empty());
}

TEST(Capture, TakesTheRowsAndHeadsWanted) {
  const at::Tensor query = tensor({2, 3, 4, 8}, 1), key = tensor({2, 3, 5, 8}, 2);
  const Capture looking({.rows = {3, 1}, .heads = {2}, .item = 1});
  capture("encoder 1", query, key);
  const at::Tensor all = at::softmax(at::matmul(query, key.transpose(2, 3)) / std::sqrt(8.0), -1);
  ASSERT_EQ(looking.calls().size(), 1u);
  const Captured& call = looking.calls()[0];
  EXPECT_EQ(call.normaliser, "softmax");
  EXPECT_EQ(call.scale, "1/√8 = 0.3536");
  ASSERT_EQ(call.maps.size(), 1u);
  ASSERT_EQ(call.maps[0].dense.size(), 10u);
  for (int64_t j = 0; j < 5; ++j) {
    EXPECT_NEAR(call.maps[0].dense[j], all[1][2][3][j].item<float>(), 1e-6);
    EXPECT_NEAR(call.maps[0].dense[5 + j], all[1][2][1][j].item<float>(), 1e-6);
  }
}

TEST(Capture, FillsAnExplanationLayerByLayerWithoutThePadding) {
  const at::Tensor query = tensor({1, 2, 3, 4}, 1), key = tensor({1, 2, 5, 4}, 2);
  const Choices choices{.score = Dot{}, .normaliser = Sparsemax{}, .structure = Dense{}};
  Explanation e;
  e.title = "t";
  e.queries.resize(2);
  e.keys.resize(4);
  {
    const Capture looking;
    capture("a", query, key, choices);
    capture("b", query, key, choices);
    looking.fill(e);
  }
  EXPECT_NO_THROW(check(e));
  EXPECT_EQ(e.layers.names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(e.heads.names, (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(e.normaliser, "sparsemax");
  const at::Tensor all = weights(query, key, choices).weights;
  EXPECT_EQ(e.maps[3].layer, 1);
  EXPECT_FLOAT_EQ(e.maps[3].dense[1 * 4 + 3], all[0][1][1][3].item<float>());
}

TEST(Capture, KeepsTheLargestOfEachRowAsLinks) {
  const at::Tensor query = tensor({1, 1, 3, 4}, 1), key = tensor({1, 1, 6, 4}, 2);
  const Capture looking({.top_k = 2});
  capture("layer", query, key);
  const auto& links = looking.calls()[0].maps[0].links;
  ASSERT_EQ(links.size(), 6u);
  const at::Tensor all = weights(query, key).weights;
  for (const Link& link : links)
    EXPECT_FLOAT_EQ(link.weight, all[0][0][link.query][link.key].item<float>());
  EXPECT_GE(links[0].weight, links[1].weight);
}

TEST(Capture, SaysWhatDoesNotFit) {
  const at::Tensor query = tensor({1, 1, 3, 4}, 1), key = tensor({1, 1, 6, 4}, 2);
  Explanation e;
  e.queries.resize(4);
  e.keys.resize(6);
  EXPECT_THROW(Capture().fill(e), InvalidArgument);
  {
    const Capture looking;
    capture("layer", query, key);
    EXPECT_THROW(looking.fill(e), InvalidArgument);
  }
  const Capture looking({.item = 1});
  EXPECT_THROW(capture("layer", query, key), InvalidArgument);
}

TEST(Capture, LabelsEveryChoice) {
  Explanation e;
  label(e,
        {.score = Dot{0.5},
         .normaliser = Entmax{},
         .structure = Structure(Causal{}) & Structure(Window{2, 0})},
        {}, 4);
  EXPECT_EQ(e.score, "dot");
  EXPECT_EQ(e.scale, "0.5");
  EXPECT_EQ(e.normaliser, "1.5-entmax");
  EXPECT_EQ(e.structure, "causal and window");
  label(e, {.score = Score(Constant{}).soft_cap(3), .normaliser = TopK{3}, .structure = {}}, {}, 4);
  EXPECT_EQ(e.score, "constant + soft cap");
  EXPECT_EQ(e.normaliser, "top-3 softmax");
  EXPECT_EQ(e.structure, "dense");
}

}  // namespace
}  // namespace fovea::explain
