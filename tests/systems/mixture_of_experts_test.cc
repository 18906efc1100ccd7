// Mixtures of experts as a system: pieces and their owners, forgetting, loads, tables and pictures, and
// what is refused. The mixture itself is tested in tests/nn.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "data/generated/pieces.h"
#include "data/random.h"
#include "systems/mixture_of_experts/model.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::mixture_of_experts {
namespace {

using test::Runs;

TEST(MixtureOfExpertsSystem, GeneratedRowsLieOnFourPieces) {
  const data::StraightPieces rows = data::generate_straight_pieces(5500, 2);
  ASSERT_EQ(rows.piece.size(), 5500u);
  for (size_t i = 0; i < rows.piece.size(); ++i)
    EXPECT_EQ(rows.piece[i], static_cast<int64_t>(4 * rows.table.x[i]));
}

// What did not learn from an item must not move: the optimiser included.
TEST(MixtureOfExpertsSystem, AnUnaskedExpertDoesNotMove) {
  torch::manual_seed(1);
  OptionValues options = find("mixture-of-experts").option_values();
  for (const char* set : {"experts=6", "k=1", "noise=false", "hidden=3"}) options.set(set);
  CurveModel model(1, options);
  torch::optim::Adam optimiser(model.parameters(), torch::optim::AdamOptions(0.1));
  const torch::Tensor x = torch::full({4, 1}, 0.3);
  const auto weights = [&](int64_t expert) {
    std::vector<torch::Tensor> out;
    for (const torch::Tensor& p : model.experts->experts[static_cast<size_t>(expert)]->parameters())
      out.push_back(p.detach().flatten());
    return torch::cat(out);
  };
  std::vector<torch::Tensor> before;
  for (int64_t i = 0; i < 6; ++i) before.push_back(weights(i));
  const int64_t asked = model.mix(x).chosen[0][0].item<int64_t>();
  // The gate learns too: a second step may ask another expert.
  model.mix(x).output.square().sum().backward();
  optimiser.step();
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(torch::equal(weights(i), before[static_cast<size_t>(i)]), i != asked) << i;
}

class ExpertRuns : public Runs {
 protected:
  static std::string error(const std::function<void()>& run) {
    try {
      run();
    } catch (const InvalidArgument& refused) {
      return refused.what();
    }
    return "";
  }
  Json run(const std::string& name, std::vector<std::string> set, const std::string& data = "") {
    return train(
        name, {.system = "mixture-of-experts", .data = data, .set = std::move(set), .threads = 1});
  }
};

TEST_F(ExpertRuns, EachPieceIsOwnedByOneExpert) {
  const Json report = run("run", {"epochs=20"});
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.9) << report.dump();
  EXPECT_LE(report.at("metrics").at("rmse").get<double>(), 0.4) << report.dump();
  check_every_verb("run", "x\n0.1\n0.9\n");
  systems::Run opened = systems::open(base_ / "run");
  std::istringstream rows("x\n0.05\n0.95\n");
  Input input{rows, "input"};
  const auto pictures = systems::explain(opened, &input);
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].queries.size(), 2u);
}

// The first half, then the second: the mixture keeps more of the first than one net of its size.
TEST_F(ExpertRuns, AMixtureForgetsLessThanOneNet) {
  const std::vector<std::string> common = {"order=in_turn", "loss=mean", "epochs=10",
                                           "rate=0.01",     "balance=0", "schedule=constant"};
  std::vector<std::string> mixture = common, net = common;
  mixture.insert(mixture.end(), {"experts=8", "k=2", "hidden=16", "bumps=16"});
  net.insert(net.end(), {"experts=1", "k=1", "hidden=128"});
  const Json few = run("mixture", mixture), one = run("net", net);
  const auto forgot = [](const Json& report) {
    return report.at("metrics").at("forgetting_mse").get<double>();
  };
  EXPECT_GT(forgot(one), 0.5) << one.dump();
  EXPECT_LT(forgot(few), forgot(one) / 3) << few.dump() << one.dump();
}

TEST_F(ExpertRuns, TablesOfTheUsersOwnGoByTheNamesOfTheirColumns) {
  data::Random random(4);
  std::string csv = "a,b,cost\n";
  for (int i = 0; i < 400; ++i) {
    const double a = random.uniform(0, 10), b = random.uniform(-1, 1);
    csv += std::to_string(a) + "," + std::to_string(b) + "," +
           std::to_string(a < 5 ? 2 * a + b : 30 - a) + "\n";
  }
  std::ofstream(base_ / "table.csv") << csv;
  const Json report = run("run", {"epochs=20", "experts=3", "k=2", "hidden=8", "batch=32"},
                          (base_ / "table.csv").string());
  EXPECT_GE(report.at("metrics").at("r2").get<double>(), 0.7) << report.dump();
  check_every_verb("run", "a,b\n1,0\n9,0\n");
  systems::Run opened = systems::open(base_ / "run");
  const auto predicted = [&](const std::string& table) {
    std::istringstream rows(table);
    std::ostringstream out;
    systems::predict(opened, {rows, "input"}, out);
    return out.str();
  };
  EXPECT_EQ(predicted("a,b\n1,0.5\n"), predicted("b,a\n0.5,1\n"));
  EXPECT_NE(error([&] { predicted("a\n1\n"); }).find("no column 'b'"), std::string::npos);
}

TEST_F(ExpertRuns, LossesKeepTheLoadOfPicturesEven) {
  const std::vector<std::string> set = {
      "task=pictures", "experts=8", "k=2",        "hidden=16",   "width=16",      "filters=4",
      "pictures=1500", "epochs=10", "rate=0.003", "balance=0.1", "capacity=1.25", "validation=0"};
  const Json report = run("run", set);
  EXPECT_LT(report.at("metrics").at("load_max_mean").get<double>(), 2) << report.dump();
  const auto pictures = [&] {
    systems::Run opened = systems::open(base_ / "run");
    return systems::explain(opened, nullptr);
  }();
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_NO_THROW(explain::check(pictures[0]));
  EXPECT_EQ(pictures[0].queries.size(), 10u);
  EXPECT_EQ(pictures[0].keys.size(), 8u);
  EXPECT_EQ(pictures[0].plots.at(1).slider.value().values.size(), 10u) << "an epoch each";
}

TEST_F(ExpertRuns, RefusesMoreExpertsThanThereAre) {
  EXPECT_EQ(error([&] {
              run("run", {"experts=3", "k=4"});
            }),
            "--set k=4: expected 1 to 3, the number of experts");
}

TEST_F(ExpertRuns, OneExpertAndNoCapacityStillAnswer) {
  EXPECT_NO_THROW(run("one", {"epochs=1", "experts=1", "k=1"}));
  const Json report = run("none", {"epochs=1", "experts=2", "k=1", "capacity=0"});
  EXPECT_EQ(report.at("metrics").at("overflow").get<double>(), 1) << "every item is beyond it";
  check_every_verb("none", "x\n0.5\n");
}

}  // namespace
}  // namespace fovea::systems::mixture_of_experts
