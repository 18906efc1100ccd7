// Kernels, leave-one-out, far queries, gaps, duplicates; the table of the regression data; the
// whole way for a CSV of one's own.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "data/formats/csv.h"
#include "data/random.h"
#include "explain/explanation.h"
#include "systems/nadaraya_watson/consistency.h"
#include "systems/nadaraya_watson/model.h"
#include "systems/nadaraya_watson/motorcycle.h"
#include "tests/nn/differences.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::nadaraya_watson {
namespace {

std::shared_ptr<Model> model_of(const torch::Tensor& x, const torch::Tensor& y,
                                const std::string& kernel, double h,
                                const std::string& metric = "none") {
  auto model = std::make_shared<Model>(
      Shape{.rows = x.size(0), .inputs = x.size(1), .metric = metric}, kernel_of(kernel));
  const torch::NoGradGuard guard;
  model->x.copy_(x);
  model->y.copy_(y);
  model->bandwidth.fill_(h);
  return model;
}

std::shared_ptr<Model> motorcycle(const std::string& kernel, double h) {
  torch::Tensor x = torch::empty({133, 1}, torch::kFloat64),
                y = torch::empty({133}, torch::kFloat64);
  for (int64_t i = 0; i < 133; ++i) {
    x[i][0] = kMotorcycle[i][0];
    y[i] = kMotorcycle[i][1];
  }
  return model_of(x, y, kernel, h);
}

// The kernels, written by hand from their definitions.
double kernel_value(const std::string& name, double u) {
  const double a = std::abs(u), pi = 3.141592653589793;
  if (name == "gaussian") return std::exp(-u * u / 2) / std::sqrt(2 * pi);
  if (name == "laplace") return 0.5 * std::exp(-a);
  if (name == "logistic") return 1 / (std::exp(u) + 2 + std::exp(-u));
  if (name == "sigmoid") return 2 / pi / (std::exp(u) + std::exp(-u));
  if (name == "silverman")
    return 0.5 * std::exp(-a / std::sqrt(2)) * std::sin(a / std::sqrt(2) + pi / 4);
  if (name == "cauchy") return 1 / (pi * (1 + u * u));
  if (a > 1) return 0;
  if (name == "box") return 0.5;
  if (name == "triangular") return 1 - a;
  if (name == "epanechnikov") return 0.75 * (1 - u * u);
  if (name == "quartic") return 15.0 / 16 * std::pow(1 - u * u, 2);
  if (name == "triweight") return 35.0 / 32 * std::pow(1 - u * u, 3);
  if (name == "tricube") return 70.0 / 81 * std::pow(1 - a * a * a, 3);
  return pi / 4 * std::cos(pi * u / 2);
}

TEST(NadarayaWatson, EveryKernelIsTheRatioByHand) {
  for (const std::string& name : kernel_names()) {
    const auto model = motorcycle(name, 3.0);
    for (const double at : {5.0, 14.6, 27.3, 40.0}) {
      double numerator = 0, denominator = 0;
      for (const auto& [t, acceleration] : kMotorcycle) {
        const double k = kernel_value(name, (at - t) / 3.0);
        numerator += k * acceleration;
        denominator += k;
      }
      const double got = model->predict(torch::full({1, 1}, at, torch::kFloat64)).item<double>();
      EXPECT_NEAR(got, numerator / denominator, 1e-8 * (1 + std::abs(got))) << name << " at " << at;
    }
  }
}

TEST(NadarayaWatson, LeavingOneOutEqualsTheIdentityAndARefit) {
  for (const std::string name : {"gaussian", "epanechnikov", "silverman"}) {
    const auto model = motorcycle(name, 4.0);
    const torch::Tensor whole = model->predict(model->x);
    const torch::Tensor left_out = model->without_self(torch::arange(133));
    for (const int64_t i : {0, 17, 66, 132}) {
      double denominator = 0;
      for (const auto& [t, a] : kMotorcycle)
        denominator += kernel_value(name, (kMotorcycle[i][0] - t) / 4.0);
      const double own = kernel_value(name, 0) / denominator;  // A_ii
      const double identity = (kMotorcycle[i][1] - whole[i].item<double>()) / (1 - own);
      EXPECT_NEAR(kMotorcycle[i][1] - left_out[i].item<double>(), identity,
                  1e-8 * (1 + std::abs(identity)))
          << name << " " << i;
      const torch::Tensor others = torch::cat({torch::arange(i), torch::arange(i + 1, 133)});
      const auto refit =
          model_of(model->x.index_select(0, others), model->y.index_select(0, others), name, 4.0);
      EXPECT_NEAR(refit->predict(model->x.slice(0, i, i + 1)).item<double>(),
                  left_out[i].item<double>(), 1e-8);
    }
  }
}

TEST(NadarayaWatson, FarFromTheDataTheNearestPointsDecide) {
  const auto model = motorcycle("gaussian", 0.5);
  const double far = model->predict(torch::full({1, 1}, 5000.0, torch::kFloat64)).item<double>();
  EXPECT_NEAR(far, 10.7, 1e-6);  // the last observation, at 57.6
}

TEST(NadarayaWatson, ACompactKernelLeavesGapsAndCountsThem) {
  const auto model = model_of(torch::tensor({{0.0}, {0.1}, {5.0}}, torch::kFloat64),
                              torch::tensor({1.0, 3.0, 9.0}, torch::kFloat64), "box", 1.0);
  EXPECT_TRUE(std::isnan(model->predict(torch::full({1, 1}, 2.5, torch::kFloat64)).item<double>()));
  EXPECT_DOUBLE_EQ(model->predict(torch::full({1, 1}, 0.05, torch::kFloat64)).item<double>(), 2.0);
  const LeaveOneOut result = leave_one_out(*model);
  EXPECT_EQ(result.undefined, 1);
  EXPECT_DOUBLE_EQ(result.mse, 4.0);
  EXPECT_DOUBLE_EQ(result.criterion, (4 + 4 + 49) / 3.0);
}

// With h ~ n^(-1/5) the error falls as n^(-2/5): eight times the observations leave 0.44 of it.
TEST(NadarayaWatson, MoreObservationsBringTheCurveToTheTruth) {
  torch::manual_seed(5);
  const torch::Tensor at = torch::linspace(0.2, 1.8, 101, torch::kFloat64);
  double before = std::numeric_limits<double>::infinity();
  for (const int64_t rows : {50, 400, 3200}) {
    const torch::Tensor x = 2 * torch::rand({rows, 1}, torch::kFloat64),
                        y = torch::sin(3 * x.select(1, 0)) +
                            0.3 * torch::randn({rows}, torch::kFloat64);
    const auto model = model_of(x, y, "gaussian", 0.25 * std::pow(static_cast<double>(rows), -0.2));
    const double error = (model->predict(at.unsqueeze(1)) - torch::sin(3 * at))
                             .square()
                             .mean()
                             .sqrt()
                             .item<double>();
    EXPECT_LT(error, 0.7 * before) << rows;
    before = error;
  }
  EXPECT_LT(before, 0.05);
}

TEST(NadarayaWatson, ErrorsByRowsEndWithThatOfAll) {
  const auto model = motorcycle("gaussian", 0.914);
  const auto errors = errors_by_rows(*model, {.rows = 133, .inputs = 1});
  ASSERT_EQ(errors.size(), 5u);
  EXPECT_EQ(errors.front().rows, 8);
  EXPECT_EQ(errors.back().rows, 133);
  EXPECT_DOUBLE_EQ(errors.back().error, std::sqrt(leave_one_out(*model).criterion));
  EXPECT_LT(errors.back().error, 0.8 * errors.front().error);
}

TEST(NadarayaWatson, DuplicatesAreAveragedAsTheBandwidthVanishes) {
  const auto model = model_of(torch::tensor({{1.0}, {1.0}, {2.0}}, torch::kFloat64),
                              torch::tensor({4.0, 6.0, 100.0}, torch::kFloat64), "gaussian", 1e-9);
  EXPECT_DOUBLE_EQ(model->predict(torch::ones({1, 1}, torch::kFloat64)).item<double>(), 5.0);
}

TEST(NadarayaWatson, OneFactorWIsABandwidth) {
  const auto plain = motorcycle("gaussian", 0.5);
  const auto learned = model_of(plain->x, plain->y, "gaussian", 1.0, "w");
  {
    const torch::NoGradGuard guard;
    learned->metric.fill_(2.0);
  }
  EXPECT_LT((plain->predict(plain->x) - learned->predict(plain->x)).abs().max().item<double>(),
            1e-9);
}

TEST(NadarayaWatson, TheMetricsGradientIsRight) {
  torch::manual_seed(4);
  const torch::Tensor x = torch::randn({12, 3}, torch::kFloat64),
                      y = torch::randn({12}, torch::kFloat64);
  for (const std::string kind : {"w", "diagonal", "full"}) {
    const auto model = model_of(x, y, "gaussian", 0.9, kind);
    const auto loss = [&] { return (model->without_self(torch::arange(12)) - y).square().mean(); };
    SCOPED_TRACE(kind);
    nn::test::expect_gradients_of_differences(loss, {model->metric});
  }
}

TEST(NadarayaWatson, NearestNeighboursSetTheBandwidth) {
  const auto model = model_of(torch::tensor({{0.0}, {1.0}, {3.0}, {7.0}}, torch::kFloat64),
                              torch::tensor({1.0, 2.0, 3.0, 4.0}, torch::kFloat64), "box", 1.0);
  model->neighbours.fill_(2);
  EXPECT_DOUBLE_EQ(model->bandwidth_at(torch::tensor({{0.9}}, torch::kFloat64)).item<double>(),
                   0.9);
  // A training row does not count itself.
  EXPECT_DOUBLE_EQ(
      model->bandwidth_at(torch::tensor({{3.0}}, torch::kFloat64), torch::tensor({int64_t{2}}))
          .item<double>(),
      3.0);
}

class Figures : public test::Runs {};

TEST_F(Figures, MotorcycleOutOfTheBox) {
  const Json report = train("run", {.system = "nadaraya-watson"});
  EXPECT_NEAR(report.at("metrics").at("bandwidth").get<double>(), 0.914, 0.005);
  EXPECT_NEAR(report.at("metrics").at("loo_mse").get<double>(), 595.94, 0.05);
  EXPECT_NEAR(report.at("metrics").at("mean_only_rmse").get<double>(), 48.1, 0.1);
  check_every_verb("run", "times\n10\n20\n");
}

// Without rows kept back the figures are of the rows it was fitted to, and say so.
TEST_F(Figures, TheSplitIsTheOneThatWasJudged) {
  EXPECT_EQ(train("all", {.system = "nadaraya-watson"}).at("split"), "train");
  EXPECT_EQ(systems::evaluate(base_ / "all", "", "test").at("split"), "train");
  const Json kept = train("kept", {.system = "nadaraya-watson", .set = {"test=0.2"}});
  EXPECT_EQ(kept.at("split"), "test");
  EXPECT_EQ(kept.at("items"), 26);
  EXPECT_FALSE(kept.at("metrics").contains("loo_mse"));
}

// The other kernels at their best bandwidths, and a bad one.
TEST_F(Figures, MotorcycleWithOtherKernels) {
  struct Row {
    const char* kernel;
    double rmse, h;
  };
  for (const Row& row : {Row{"tricube", 24.3, 2.3}, Row{"epanechnikov", 24.5, 2.3}}) {
    const Json metrics = train(row.kernel, {.system = "nadaraya-watson",
                                            .set = {std::string("kernel=") + row.kernel}})
                             .at("metrics");
    EXPECT_NEAR(metrics.at("loo_rmse").get<double>(), row.rmse, 0.06) << row.kernel;
    EXPECT_NEAR(metrics.at("bandwidth").get<double>(), row.h, 0.12) << row.kernel;
  }
  // The box's error jumps wherever an observation enters or leaves: at the bandwidth itself, not at
  // the end of a search.
  const Json box =
      train("box", {.system = "nadaraya-watson", .set = {"kernel=box", "bandwidth=fixed", "h=2.4"}})
          .at("metrics");
  EXPECT_NEAR(box.at("loo_rmse").get<double>(), 25.2, 0.06);
  const Json wide =
      train("wide", {.system = "nadaraya-watson", .set = {"bandwidth=fixed", "h=5"}}).at("metrics");
  EXPECT_NEAR(wide.at("loo_rmse").get<double>(), 34.3, 0.06);
}

struct Oracle {
  const char *file, *x, *y;
  double h, loo_mse, rmse;
};

TEST_F(Figures, TableOfTheRegressionData) {
  const std::string folder = data_folder("regression");
  if (folder.empty()) GTEST_SKIP() << "no regression data: set FOVEA_DATA";
  for (const Oracle& row : {Oracle{"mcycle", "times", "accel", 0.9138, 595.936, 21.082},
                            Oracle{"faithful", "eruptions", "waiting", 0.2614, 32.2961, 5.5694},
                            Oracle{"cps71", "age", "logwage", 1.8922, 0.316055, 0.53079},
                            Oracle{"ethanol", "E", "NOx", 0.0157, 0.105614, 0.26269},
                            Oracle{"lidar", "range", "logratio", 15.129, 0.00662207, 0.077938},
                            Oracle{"geyser", "duration", "waiting", 0.2008, 111.071, 10.357}}) {
    const Json metrics =
        train(row.file, {.system = "nadaraya-watson",
                         .data = folder + "/" + row.file + ".csv",
                         .set = {std::string("x=") + row.x, std::string("y=") + row.y}})
            .at("metrics");
    EXPECT_NEAR(metrics.at("loo_mse").get<double>() / row.loo_mse, 1, 1e-3) << row.file;
    EXPECT_NEAR(metrics.at("rmse").get<double>() / row.rmse, 1, 1e-3) << row.file;
    EXPECT_NEAR(metrics.at("bandwidth").get<double>() / row.h, 1, 1e-3) << row.file;
  }
}

TEST_F(Figures, ATableOfOnesOwn) {
  std::ofstream(base_ / "own.csv") << "height,age,name\n1,10,a\n2,12,b\n3,15,c\n4,20,d\n5,26,e\n";
  const std::string path = (base_ / "own.csv").string();
  EXPECT_THROW(train("a", {.system = "nadaraya-watson", .data = path}),
               InvalidArgument);  // the last column is a name
  const Json report = train("b", {.system = "nadaraya-watson", .data = path, .set = {"y=age"}});
  EXPECT_EQ(report.at("items"), 5);
  check_every_verb("b", "height\n2.5\n");
  EXPECT_NO_THROW(evaluate((base_ / "b").string(), path, "test"));
  const Json learned = train(
      "c", {.system = "nadaraya-watson", .data = path, .set = {"y=age", "learn=w", "epochs=50"}});
  EXPECT_LE(learned.at("metrics").at("loo_mse").get<double>(),
            learned.at("metrics").at("loo_mse_one_bandwidth").get<double>() * 1.001);
  std::ofstream(base_ / "one.csv") << "height,age\n1,10\n";
  try {
    train("e", {.system = "nadaraya-watson", .data = (base_ / "one.csv").string()});
    ADD_FAILURE() << "one row was enough";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("one.csv: one row is left, expected at least 2"),
              std::string::npos)
        << error.what();
  }
  const Json nearest = train(
      "d", {.system = "nadaraya-watson", .data = path, .set = {"y=age", "bandwidth=nearest"}});
  EXPECT_GE(nearest.at("metrics").at("neighbours").get<double>(), 1);
}

TEST_F(Figures, AColumnOfNoiseLosesItsWeight) {
  data::Random random(3);
  std::ofstream table(base_ / "noise.csv");
  table << "x,noise,y\n";
  for (int row = 0; row < 200; ++row) {
    const double x = random.uniform(0, 6);
    table << x << "," << random.uniform(0, 6) << "," << std::sin(x) + 0.1 * random.normal() << "\n";
  }
  table.close();
  const Json metrics = train("learned", {.system = "nadaraya-watson",
                                         .data = (base_ / "noise.csv").string(),
                                         .set = {"learn=diagonal", "epochs=150", "rate=0.1"}})
                           .at("metrics");
  EXPECT_LT(metrics.at("loo_mse").get<double>(),
            0.7 * metrics.at("loo_mse_one_bandwidth").get<double>());
}

TEST_F(Figures, SilvermansKernelWarns) {
  std::FILE* said = std::tmpfile();
  {
    fovea::train::Progress lines(fovea::train::Progress::Style::kLines, said);
    systems::train({.system = "nadaraya-watson",
                    .set = {"kernel=silverman", "bandwidth=fixed", "h=3"},
                    .out = base_ / "run"},
                   lines);
  }
  std::rewind(said);
  std::string text(1000, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), said));
  std::fclose(said);
  EXPECT_NE(text.find("weights may be negative"), std::string::npos) << text;
}

}  // namespace
}  // namespace fovea::systems::nadaraya_watson
