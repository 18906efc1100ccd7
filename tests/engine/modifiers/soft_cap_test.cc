#include "tests/engine/bounds.h"
#include "tests/engine/modifiers/modifier_check.h"

namespace fovea::engine::testing {
namespace {

template <class T>
void check_soft_cap(size_t nq, size_t nk, double cap, double spread) {
  ModifierRig<T> rig(nq, nk, SoftCap{cap}, SoftCap{cap}, make_soft_cap<T>);
  for (T& x : rig.s) x *= static_cast<T>(spread);
  const std::vector<T> before = rig.s, ds = rig.ds;
  rig.stage->apply(rig.tile, nullptr, rig.saved.data());
  rig.stage->backward(rig.tile, nullptr, rig.saved.data(), nullptr);
  for (size_t r = 0; r < nq; ++r)
    for (size_t c = 0; c < nk; ++c) {
      const size_t at = r * rig.stride + c;
      const double t = std::tanh(before[at] / cap);
      FOVEA_ASSERT_CLOSE(rig.s[at], cap * t,
                         bounds::rounded(std::fabs(cap * t), bounds::kUlpOf<T>));
      FOVEA_ASSERT_CLOSE(rig.ds[at], ds[at] * (1 - t * t),
                         bounds::rounded(std::fabs(ds[at]), bounds::kUlpOf<T>));
    }
}

class SoftCapTest : public TargetTest {};

TEST_P(SoftCapTest, SquashesScores) {
  for (auto [nq, nk] : modifier_sizes())
    for (auto [cap, spread] : {std::pair<double, double>{30, 1}, {2, 1}, {5, 100}, {50, 1e4}}) {
      check_soft_cap<float>(nq, nk, cap, spread);
      check_soft_cap<double>(nq, nk, cap, spread);
      if (HasFatalFailure()) FAIL() << "cap " << cap << ", spread " << spread;
    }
}

TEST_P(SoftCapTest, AMaskedKeyStaysMasked) {
  ModifierRig<float> rig(1, 17, SoftCap{2}, SoftCap{2}, make_soft_cap<float>);
  rig.s[3] = -std::numeric_limits<float>::infinity();
  rig.s[4] = std::numeric_limits<float>::quiet_NaN();
  rig.ds[3] = rig.ds[4] = 0;
  rig.stage->apply(rig.tile, nullptr, rig.saved.data());
  rig.stage->backward(rig.tile, nullptr, rig.saved.data(), nullptr);
  EXPECT_EQ(rig.s[3], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(rig.s[4]));
  EXPECT_EQ(rig.ds[3], 0);
  EXPECT_EQ(rig.ds[4], 0);
}

FOVEA_FOR_EVERY_TARGET(SoftCapTest);

}  // namespace
}  // namespace fovea::engine::testing
