#include <gtest/gtest.h>

#include <string>

#include "fovea/engine.h"
#include "hwy/targets.h"

namespace fovea::engine {
namespace {

TEST(View, OfIsContiguousInRowMajorOrder) {
  float data[24];
  const View view = View::of(data, DType::kFloat32, {2, 3, 4});
  EXPECT_EQ(view.rank, 3);
  EXPECT_EQ(view.size, (std::array<int64_t, 4>{2, 3, 4, 0}));
  EXPECT_EQ(view.stride, (std::array<int64_t, 4>{12, 4, 1, 0}));
  EXPECT_TRUE(view);
  EXPECT_FALSE(View());
}

TEST(View, OfRefusesFiveDimensions) {
  EXPECT_THROW(View::of(nullptr, DType::kFloat32, {1, 1, 1, 1, 1}), InvalidArgument);
}

TEST(Simd, TargetIsTheBestThatIsNotDisabled) {
  const std::string best = simd_target();
  for (int64_t target : hwy::SupportedAndGeneratedTargets()) {
    hwy::SetSupportedTargetsForTest(target);
    EXPECT_EQ(simd_target(), std::string(hwy::TargetName(target)));
  }
  hwy::SetSupportedTargetsForTest(0);
  EXPECT_EQ(simd_target(), best);
}

}  // namespace
}  // namespace fovea::engine
