// Deep Sets: symmetry, formulas, odd sets, short runs.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>

#include "data/generated/solids.h"
#include "systems/deep_sets/digits.h"
#include "systems/deep_sets/model.h"
#include "systems/deep_sets/shuffle.h"
#include "tests/systems/sets.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

using test::Sets;
using torch::indexing::Slice;

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}
data::Packed sets_of(const torch::Tensor& values, std::vector<int64_t> offsets) {
  return {values, torch::tensor(at::ArrayRef<int64_t>(offsets)).to(torch::kInt32)};
}

TEST(DeepSets, TheEquivariantLayerIsItsFormula) {
  torch::manual_seed(1);
  for (const std::string pool : {"max", "mean"}) {
    deep_sets::Equivariant layer(3, 4, pool);
    const auto p = layer.named_parameters();
    const torch::Tensor x = torch::randn({6, 3}),
                        out = layer.forward(x, torch::tensor({0, 2, 2, 6}, torch::kInt32));
    for (const auto& [from, to] : {std::pair(0, 2), std::pair(2, 6)}) {
      const torch::Tensor part = x.index({Slice(from, to)}),
                          pooled = pool == "max" ? std::get<0>(part.max(0)) : part.mean(0);
      const torch::Tensor expected =
          torch::tanh(part.matmul(p["lambda.weight"].t()) + p["lambda.bias"] -
                      pooled.matmul(p["gamma.weight"].t()));
      EXPECT_LT(gap(out.index({Slice(from, to)}), expected), 1e-6) << pool;
    }
  }
}

// An invariant answer stays, an equivariant one moves along.
TEST(DeepSets, ShufflingChangesNothing) {
  torch::manual_seed(2);
  const torch::Tensor order = torch::tensor({4, 0, 3, 1, 2});
  deep_sets::CloudClassifier clouds(16, 8, "max", 0.5);
  clouds.eval();
  const torch::Tensor points = torch::randn({5, 3});
  EXPECT_LT(gap(clouds.forward(sets_of(points, {0, 5})),
                clouds.forward(sets_of(points.index_select(0, order), {0, 5}))),
            1e-5);
  deep_sets::Equivariant layer(3, 4, "mean");
  const torch::Tensor offsets = torch::tensor({0, 5}, torch::kInt32);
  EXPECT_LT(gap(layer.forward(points, offsets).index_select(0, order),
                layer.forward(points.index_select(0, order), offsets)),
            1e-6);
  deep_sets::DigitSum sum({.filters = 2, .width = 4});
  sum.eval();
  const torch::Tensor phi = sum.features(torch::randn({5, 784})),
                      shuffled = phi.index_select(0, order);
  EXPECT_LT(gap(sum.sums(phi, offsets), sum.sums(shuffled, offsets)), 1e-5);
  EXPECT_GT(gap(sum.gru_sums(phi, offsets), sum.gru_sums(shuffled, offsets)), 1e-6)
      << "the GRU should feel the order";
}

TEST(DeepSets, SumsAreTakenInDouble) {
  std::vector<float> values(3000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = i % 3 == 0 ? 1e7f : i % 3 == 1 ? -1e7f : 0.01f;
  const torch::Tensor x = torch::tensor(at::ArrayRef<float>(values)).unsqueeze(1),
                      offsets = torch::tensor({0, 3000}, torch::kInt32);
  EXPECT_NEAR(deep_sets::sum_of(x, offsets)[0][0].item<double>(), 10, 1e-3);
  EXPECT_EQ(deep_sets::sum_of(x.slice(0, 0, 0), torch::tensor({0, 0}, torch::kInt32))
                .abs()
                .sum()
                .item<double>(),
            0)
      << "the empty set";
}

TEST(DeepSets, RepeatsAreKeptAndPartsAddUp) {
  torch::manual_seed(3);
  deep_sets::DigitSum model({.filters = 2, .width = 4});
  model.eval();
  const torch::Tensor one = model.features(torch::randn({1, 784})), thrice = one.expand({3, 4});
  EXPECT_NEAR(model.sums(thrice, torch::tensor({0, 3}, torch::kInt32))[0].item<double>(),
              3 * model.contributions(one)[0].item<double>(), 1e-4);
}

TEST(DeepSets, APaddedStepOfTheGruIsNeverRead) {
  torch::manual_seed(4);
  deep_sets::DigitSum model({.filters = 2, .width = 4});
  const torch::Tensor phi = torch::randn({9, 4});
  const torch::Tensor together = model.gru_sums(phi, torch::tensor({0, 2, 9}, torch::kInt32));
  EXPECT_LT(
      gap(together[0], model.gru_sums(phi.slice(0, 0, 2), torch::tensor({0, 2}, torch::kInt32))[0]),
      1e-6);
}

explain::Explanation shuffle_test_of(deep_sets::DigitSum& model) {
  model.eval();
  explain::Explanation out;
  for (const char* name : {"3", "1", "4", "1", "5"}) out.keys.push_back({.text = name});
  deep_sets::add_shuffle_test(out, model, model.features(torch::randn({5, 784})));
  return explain::from_json(explain::to_json(out));
}

// What the page works out, from the numbers it is given.
TEST(DeepSets, TheShuffleTestCarriesTheModel) {
  torch::manual_seed(7);
  for (const std::string rho : {"linear", "mlp"}) {
    deep_sets::DigitSum model({.filters = 2, .width = 4, .rho = rho});
    const explain::Explanation out = shuffle_test_of(model);
    const explain::Reader &own = out.shuffle->readers[0], &gru = out.shuffle->readers[1];
    const auto tensor = [](const std::vector<float>& x) {
      return torch::tensor(at::ArrayRef<float>(x));
    };
    torch::Tensor x = (tensor(out.shuffle->vectors).view({5, 4}) + own.shift).sum(0);
    for (const explain::Layer& layer : own.layers) {
      x = tensor(layer.weight).view({-1, x.size(0)}).mv(x) + tensor(layer.bias);
      if (layer.activation == explain::Layer::Activation::kRelu) x = x.relu();
    }
    EXPECT_NEAR(x.item<double>(), own.given, 1e-4) << rho;
    EXPECT_EQ(own.layers.size(), rho == "mlp" ? 2u : 1u);
    EXPECT_EQ(gru.gru->hidden_weight.size(), 3u * 64 * 64);
    for (const auto& row : out.tables[0].rows) EXPECT_EQ(row[1], out.tables[0].rows[0][1]);
  }
  deep_sets::DigitSum large({.filters = 2, .width = 256});
  const explain::Explanation out = shuffle_test_of(large);
  EXPECT_EQ(out.shuffle->orders.size(), size_t{deep_sets::kDrawnOrders});
  EXPECT_EQ(out.shuffle->readers[1].answers[0], out.shuffle->readers[1].given);
  EXPECT_LT(explain::to_json(out).size(), 100'000u);
}

TEST(Solids, AreStandardisedAndAConstantCloudIsGuarded) {
  for (int64_t which = 0; which < data::kSolids; ++which) {
    const auto cloud = data::solid_cloud(which, 200, 7);
    const torch::Tensor x = torch::tensor(at::ArrayRef<float>(cloud)).view({-1, 3});
    EXPECT_LT(x.mean(0).abs().max().item<double>(), 1e-5) << data::solid_name(which);
    EXPECT_NEAR(x.square().mean().item<double>(), 1, 1e-4) << data::solid_name(which);
  }
  std::vector<float> constant(30, 4.0f);
  data::standardise_cloud(constant);
  for (const float x : constant) EXPECT_EQ(x, 0.0f);
}

TEST_F(Sets, DigitSumsGoOnWhereAGruStops) {
  const Json report = train(
      "run", {.system = "deep-sets",
              .set = {"epochs=2", "sets=2500", "batch=8", "filters=6", "width=16", "rate=0.003"},
              .threads = 1});
  const Json& metrics = report.at("metrics");
  EXPECT_GE(metrics.at("exact_1").get<double>(), 0.4);
  EXPECT_GT(metrics.at("exact_50").get<double>(), metrics.at("gru_exact_50").get<double>());
  check_every_verb("run", pictures({1, 2, 3}) + "\n");
  check_blank_line("run", pictures({1, 2, 3}) + "\n");
  std::vector<std::string> names;
  for (const auto& [name, value] : metrics.items())
    if (name.starts_with("exact_")) names.push_back(name.substr(6));
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end(), [](const auto& a, const auto& b) {
    return std::stoi(a) < std::stoi(b);
  })) << metrics.dump();
}

TEST_F(Sets, SolidsAreToldApart) {
  const Json report =
      train("run", {.system = "deep-sets",
                    .set = {"task=solids", "epochs=2", "cloud_width=32", "pool=mean", "rate=0.005"},
                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.5);
  const systems::Run run = systems::open(base_ / "run");
  EXPECT_TRUE(run.task->write().files.at("clouds.csv").starts_with("bag,label,x,y,z\n"));
  std::string csv = "bag,x,y,z\n";
  for (int i = 0; i < 50; ++i) csv += "a," + std::to_string(i) + ",0,1\n";
  check_every_verb("run", csv);
}

TEST_F(Sets, CloudsOfATable) {
  const auto table = [&](const std::string& name, const std::string& labels, int copies) {
    std::ofstream file(base_ / name);
    file << "bag,label,a,b,c\n";
    for (int bag = 0; bag < copies * static_cast<int>(labels.size()); ++bag)
      for (const char* point : {"0,0,1", "0,2,5", "1,3,0", "4,4,1"})
        file << bag << "," << labels[static_cast<size_t>(bag) % labels.size()] << "," << point
             << "\n";
    return (base_ / name).string();
  };
  train("run", {.system = "deep-sets",
                .data = table("train.csv", "01", 20),
                .set = {"task=solids", "epochs=1", "cloud_width=8"},
                .threads = 1});
  systems::Run run = systems::open(base_ / "run");
  const explain::Explanation shown = systems::explain(run, nullptr).at(0);
  ASSERT_EQ(shown.plots.size(), 2u);
  int wrong = 0;
  for (const explain::Plot& plot : shown.plots) {
    wrong += plot.title.starts_with("0: taken for 1, p = ") ||
             plot.title.starts_with("1: taken for 0, p = ");
    EXPECT_NE(plot.title.find("p = "), std::string::npos) << plot.title;
  }
  EXPECT_EQ(wrong, 1) << shown.plots[0].title << "; " << shown.plots[1].title;

  const std::string other = table("other.csv", "019", 1);
  try {
    systems::evaluate(base_ / "run", other, "test");
    ADD_FAILURE() << "a label that training never saw was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              other + ": label 9 of bag '2', expected 0 to 1 as in training");
  }

  // Columns go by their names; a run that has none takes them as they come.
  const auto answer = [&](const std::string& csv) {
    systems::Run opened = systems::open(base_ / "run");
    std::istringstream lines(csv);
    std::ostringstream answers;
    systems::predict(opened, {lines, "input"}, answers);
    return answers.str();
  };
  const std::string in_order = "bag,a,b,c\n1,0,0,1\n1,0,2,5\n1,1,3,0\n",
                    turned = "bag,c,b,a\n1,1,0,0\n1,5,2,0\n1,0,3,1\n";
  EXPECT_EQ(answer(turned), answer(in_order));
  EXPECT_THROW(answer("bag,x,y,z\n1,0,0,1\n"), InvalidArgument);
  const std::string named = answer(turned);
  Json config;
  std::ifstream(base_ / "run" / "config.json") >> config;
  ASSERT_EQ(config.at("facts").erase("columns"), 1u) << config.dump();
  std::ofstream(base_ / "run" / "config.json") << config.dump();
  sign_again("run");
  EXPECT_NE(answer(turned), named);
}

TEST_F(Sets, OnesOwnSetsAreDrawn) {
  train("digits", {.system = "deep-sets",
                   .set = {"epochs=1", "sets=10", "filters=1", "width=2"},
                   .threads = 1});
  const std::string folder = pictures({1, 2, 3});
  const auto drawn = [&](const std::string& name, const std::string& text) {
    systems::Run run = systems::open(base_ / name);
    std::istringstream lines(text);
    Input input{lines, "input"};
    auto all = systems::explain(run, &input);
    for (const explain::Explanation& one : all) EXPECT_NO_THROW(explain::check(one)) << one.title;
    return all;
  };
  const auto sets = drawn("digits", folder + "\n" + folder + "\n");
  ASSERT_EQ(sets.size(), 3u);  // a set, its shuffle test, a set
  for (const size_t i : {size_t{0}, size_t{2}}) {
    EXPECT_TRUE(sets[i].queries.at(0).text.starts_with(folder + ": Deep Sets "))
        << sets[i].queries[0].text;
    EXPECT_EQ(sets[i].keys.size(), 3u);
    EXPECT_EQ(sets[i].maps.at(0).dense.size(), 3u);
  }
  EXPECT_TRUE(sets[1].shuffle.has_value());
  EXPECT_EQ(sets[1].outcome, "");
  EXPECT_THROW(drawn("digits", (base_ / "nowhere").string() + "\n"), InvalidArgument);

  train("solids", {.system = "deep-sets",
                   .set = {"task=solids", "epochs=1", "cloud_width=4", "points=10"},
                   .threads = 1});
  std::string csv = "bag,x,y,z\n";
  for (int bag = 0; bag < 30; ++bag)
    for (int i = 0; i < 5; ++i)
      csv += "b" + std::to_string(bag) + "," + std::to_string(i * bag) + "," +
             std::to_string(i % 2) + ",1\n";
  const auto clouds = drawn("solids", csv);
  ASSERT_FALSE(clouds.empty());
  EXPECT_EQ(clouds[0].plots.size(), 24u);
  EXPECT_TRUE(clouds[0].plots.at(3).title.starts_with("b3: taken for "))
      << clouds[0].plots[3].title;
  EXPECT_NE(clouds[0].notes.back().find("24 of 30"), std::string::npos);
}

TEST_F(Sets, PartsAreJoinedByPlusWhereTheyAddUp) {
  EXPECT_EQ(deep_sets::fixed(-0.001, 2), "0.00");
  EXPECT_EQ(deep_sets::fixed(-0.0, 0), "0");
  EXPECT_EQ(deep_sets::fixed(-1.5, 2), "-1.50");
  const std::string folder = pictures({1, 2, 3});
  for (const std::string rho : {"linear", "mlp"}) {
    train(rho, {.system = "deep-sets",
                .set = {"epochs=1", "sets=10", "filters=1", "width=2", "rho=" + rho},
                .threads = 1});
    systems::Run run = systems::open(base_ / rho);
    std::istringstream lines(folder + "\n");
    std::ostringstream answers;
    systems::predict(run, {lines, "input"}, answers);
    EXPECT_EQ(std::ranges::count(answers.str(), '+'), rho == "linear" ? 2 : 0) << answers.str();
    const std::string parts = answers.str().substr(answers.str().rfind('\t') + 1);
    EXPECT_EQ(std::ranges::count(parts, ' '), rho == "linear" ? 4 : 2) << parts;
  }
}

}  // namespace
}  // namespace fovea::systems
