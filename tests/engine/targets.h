// Tests that run under every SIMD target the engine was compiled for and the machine has.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "hwy/targets.h"

namespace fovea::engine::testing {

class TargetTest : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

inline std::string target_name(const ::testing::TestParamInfo<int64_t>& info) {
  return hwy::TargetName(info.param);
}

#define FOVEA_FOR_EVERY_TARGET(SUITE)      \
  INSTANTIATE_TEST_SUITE_P(Targets, SUITE, \
                           ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), target_name)

}  // namespace fovea::engine::testing
