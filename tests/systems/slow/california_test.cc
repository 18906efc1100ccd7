// Nadaraya-Watson on 20,640 rows of 8 columns: 30 bandwidths by leave-one-out in half a minute on two cores, and
// what a learned metric gains.
#include <gtest/gtest.h>

#include "tests/systems/run/runs.h"

namespace fovea::systems {
namespace {

class California : public test::Runs {
 protected:
  Json housing(const std::string& name, std::vector<std::string> more) const {
    more.insert(more.end(), {"y=median_house_value", "missing=median"});
    return train(name, {.system = "nadaraya-watson",
                        .data = data_folder("regression") + "/california_housing.csv",
                        .set = more,
                        .threads = 2});
  }
};

TEST_F(California, ThirtyBandwidthsInHalfAMinute) {
  if (data_folder("regression").empty()) GTEST_SKIP() << "no regression data: set FOVEA_DATA";
  const Json report = housing("grid", {"grid=30"});
  EXPECT_EQ(report.at("items"), 20640);
  EXPECT_NEAR(report.at("metrics").at("loo_rmse").get<double>(), 61701, 62);
  EXPECT_LT(report.at("seconds").get<double>(), 30);
}

TEST_F(California, ALearnedMetricLowersTheErrorOfTheBestBandwidth) {
  if (data_folder("regression").empty()) GTEST_SKIP() << "no regression data: set FOVEA_DATA";
  const Json metrics = housing("learned", {"learn=diagonal", "epochs=3"}).at("metrics");
  EXPECT_LT(metrics.at("loo_mse").get<double>(),
            0.85 * metrics.at("loo_mse_one_bandwidth").get<double>());
}

}  // namespace
}  // namespace fovea::systems
