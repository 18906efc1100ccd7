#include "bench/roofs/roof.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "bench/roofs/kernels.h"
#include "bench/timing.h"

namespace fovea::bench {
namespace {

engine::Parallel one_thread() {
  return {.workers = 1, .run = [](size_t n, const std::function<void(size_t)>& body) {
            for (size_t i = 0; i < n; ++i) body(i);
          }};
}

TEST(Roof, LiesWithinWhatAProcessorCanDo) {
  Roofs roofs(one_thread());
  const double lanes = static_cast<double>(roof_kernels().lanes);
  // From one multiply-add every second cycle at 1 GHz to three a cycle at 6 GHz.
  const double fma = roofs.best(Roof::kFma, 2);
  EXPECT_GT(fma, 0.5e9 * 2 * lanes);
  EXPECT_LT(fma, 6e9 * 3 * 2 * lanes);
  // exp takes more than one instruction and, with a dozen or so, not a hundred; tanh takes a
  // division on top.
  const double exp = roofs.best(Roof::kExp, 2), tanh = roofs.best(Roof::kTanh, 2);
  EXPECT_LT(exp, fma / 2);
  EXPECT_GT(exp, fma / 100);
  EXPECT_LT(tanh, exp * 1.2);
  EXPECT_GT(tanh, exp / 20);
  for (Roof memory : {Roof::kTriad, Roof::kTriadStreamed, Roof::kGather}) {
    const double bandwidth = roofs.best(memory, 2);
    EXPECT_GT(bandwidth, 0.2e9) << name(memory);
    EXPECT_LT(bandwidth, 1e12) << name(memory);
  }
}

TEST(Roof, SamplesForAsLongAsAsked) {
  Roofs roofs(one_thread());
  roofs.sample(Roof::kFma);
  const double start = seconds_now();
  const double long_sample = roofs.sample(Roof::kFma, 30e-3);
  EXPECT_GE(seconds_now() - start, 25e-3);
  // Amounts count every repetition, of which there are some thirty. Beside other programs the core
  // is shared all the while.
  EXPECT_GT(long_sample, roofs.best(Roof::kFma, 2) / 16);
}

TEST(Roof, Bf16IsAboveFloat32WhereThereIsAnInstruction) {
  Roofs roofs(one_thread());
  const double bf16 = roofs.best(Roof::kBf16, 2);
  if (bf16_unit().run == nullptr) {
    EXPECT_EQ(bf16, 0);
  } else {
    EXPECT_GT(bf16, roofs.best(Roof::kFma, 2) * 1.2);
  }
}

TEST(Roof, FollowsTheHeldTarget) {
  const std::string before = engine::simd_target();
  const size_t lanes = roof_kernels().lanes;
  if (before != "AVX3") GTEST_SKIP() << "one target only: " << before;
  {
    const HeldTarget held("AVX2");
    EXPECT_STREQ(engine::simd_target(), "AVX2");
    EXPECT_EQ(roof_kernels().lanes, lanes / 2);
  }
  EXPECT_EQ(engine::simd_target(), before);
  EXPECT_EQ(roof_kernels().lanes, lanes);
}

TEST(Roof, RefusesAnUnknownTarget) {
  try {
    const HeldTarget held("AVX9");
    FAIL() << "no such target";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("AVX9"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(engine::simd_target()), std::string::npos);
  }
}

TEST(RoofKernels, ComputeWhatTheySay) {
  const RoofKernels& kernels = roof_kernels();
  std::vector<float> x(256, 0.0f);
  EXPECT_FLOAT_EQ(kernels.exponential(x.data(), x.size(), 3), 3 * 256.0f);
  EXPECT_FLOAT_EQ(kernels.tanh(x.data(), x.size(), 3), 0.0f);
  alignas(64) float a[64] = {}, b[64], c[64];
  for (int i = 0; i < 64; ++i) b[i] = static_cast<float>(i), c[i] = 2.0f;
  kernels.triad(a, b, c, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(a[i], b[i] + 6.0f);
  kernels.triad_streamed(a, c, b, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(a[i], 2.0f + 3.0f * b[i]);
  const std::vector<float> rows(4 * 64, 1.0f);
  const int32_t index[] = {3, 0, 3};
  EXPECT_EQ(kernels.gather(rows.data(), 64, index, 3), 3 * 64.0f);
}

}  // namespace
}  // namespace fovea::bench
