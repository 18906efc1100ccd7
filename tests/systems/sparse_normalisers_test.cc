// Sparse normalisers: their known rows, and a table that is what the systems say themselves.
#include <torch/torch.h>

#include "systems/sparse_normalisers/model.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"
#include "train/task.h"

namespace fovea::systems::sparse_normalisers {
namespace {

TEST(SparseNormalisers, TheRowsThatAreKnown) {
  const torch::Tensor scores = torch::tensor({{1.0, 0.5, -1.0}, {2.0, 0.0, -50.0}});
  const auto rows = [&](size_t which) {
    return weights_of(scores, kCompared[which]).to(torch::kFloat64);
  };
  const auto near = [](const torch::Tensor& row, const std::vector<double>& expected) {
    return torch::allclose(row, torch::tensor(expected, torch::kFloat64), 0, 6e-5);
  };
  EXPECT_TRUE(near(rows(0)[0], {0.5741, 0.3482, 0.0777}));
  EXPECT_TRUE(near(rows(1)[0], {0.6740, 0.3260, 0}));
  EXPECT_TRUE(near(rows(2)[0], {0.75, 0.25, 0}));
  for (const size_t sparse : {1, 2})  // exactly
    EXPECT_EQ(to_floats(rows(sparse)[1]), (std::vector<float>{1, 0, 0}));
}

class SparseRuns : public test::Runs {};

TEST_F(SparseRuns, TheTableIsWhatTheSystemsSay) {
  const Json table =
      train("table", {.system = "sparse-normalisers", .set = {"systems=gat"}, .threads = 1});
  for (const char* normaliser : {"softmax", "sparsemax"}) {
    SCOPED_TRACE(normaliser);
    std::vector<std::string> set = find("gat").tour;
    set.push_back(std::string("normaliser=") + normaliser);
    const Json alone = train(normaliser, {.system = "gat", .set = set, .threads = 1});
    const std::string name = std::string("gat_") + normaliser;
    EXPECT_EQ(table.at("metrics").at(name), alone.at("metrics").at("accuracy"));
    EXPECT_EQ(table.at("attention").at("zeros_" + name), alone.at("attention").at("zeros"));
    EXPECT_EQ(table.at("attention").at("hit_rate_" + name), alone.at("attention").at("hit_rate"));
  }
  EXPECT_EQ(table.at("metrics").at("zeros_softmax"), 0);
  EXPECT_GT(table.at("metrics").at("zeros_sparsemax"), 0);
  check_every_verb("table", "1 0.5 -1\n");
}

TEST_F(SparseRuns, WhatCannotBeComparedIsNamed) {
  const auto message = [&](const std::string& systems) {
    return said(
        [&] { train("run", {.system = "sparse-normalisers", .set = {"systems=" + systems}}); });
  };
  EXPECT_NE(message("word-sum").find("word-sum has no option normaliser"), std::string::npos);
  EXPECT_NE(message("gat,gat").find("gat twice"), std::string::npos);
  EXPECT_NE(message("gatt").find("gat"), std::string::npos);
  EXPECT_NE(message("").find("systems: none"), std::string::npos);
  EXPECT_NE(said([&] {
              train("run", {.system = "sparse-normalisers", .data = "/"});
            }).find("trains systems on what they generate"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea::systems::sparse_normalisers
