// A model is counted before memory is taken for it, and counting it changes nothing.
#include "train/weight_budget.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <torch/torch.h>

#include "data/files/limits.h"
#include "fovea/error.h"

namespace fovea::train {
namespace {

// Layers of a megabyte each, drawn at random.
class Stack : public Task {
 public:
  explicit Stack(int64_t layers) : layers_(layers) {}

  std::shared_ptr<torch::nn::Module> build() override {
    ++builds;
    model_ = std::make_shared<torch::nn::Module>();
    for (int64_t i = 0; i < layers_; ++i)
      model_->register_parameter("w" + std::to_string(i), torch::randn({256, 1024}));
    return model_;
  }
  void read(const Source&) override {}
  void fit(Fit&) override {}
  Evaluation evaluate(Split) override { return {}; }
  void predict(Input, std::ostream&) override {}
  std::vector<explain::Explanation> explain(Input*) override { return {}; }

  int builds = 0;

 private:
  int64_t layers_;
  std::shared_ptr<torch::nn::Module> model_;
};

class WeightBudget : public testing::Test {
 protected:
  void TearDown() override { data::set_limits(""); }

  static int64_t peak_megabytes() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  }
};

TEST_F(WeightBudget, AModelTooLargeIsRefusedBeforeItsMemoryIsTaken) {
  data::set_limits("weights=1G");
  Stack stack(1'000'000);
  const int64_t before = peak_megabytes();
  try {
    built(stack);
    FAIL() << "was built";
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(
        error.what(),
        "the model: at least 1025 MiB of weights, more than 1 GiB, the limit `weights` "
        "(FOVEA_LIMITS=weights=2GiB sets another); lower its widths, layers or vocabulary");
  }
  EXPECT_LT(peak_megabytes() - before, 300);
}

TEST_F(WeightBudget, CountingChangesNoWeight) {
  Stack stack(80);
  torch::manual_seed(5);
  const auto counted = built(stack);
  EXPECT_GT(stack.builds, 1) << "it was to be large enough to be counted";
  torch::manual_seed(5);
  const auto expected = Stack(80).build();
  ASSERT_EQ(counted->parameters().size(), 80u);
  for (size_t i = 0; i < 80; ++i)
    EXPECT_TRUE(counted->parameters()[i].equal(expected->parameters()[i])) << i;
  EXPECT_NE(counted->parameters()[0].data_ptr(), counted->parameters()[1].data_ptr());
}

TEST_F(WeightBudget, EachModelHasTheWholeLimit) {
  data::set_limits("weights=100M");
  Stack first(60), second(60), third(101);
  const auto one = built(first), two = built(second);
  EXPECT_EQ(first.builds, 1);
  EXPECT_THROW(built(third), InvalidArgument);
  EXPECT_EQ(built(second)->parameters().size(), 60u);
}

}  // namespace
}  // namespace fovea::train
