#include "bench/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <stdexcept>

namespace fovea::bench {
namespace {

constexpr size_t kSize = 64 << 20;

void touch_twice_in_turn() {
  for (int i = 0; i < 2; ++i) {
    auto block = std::make_unique<char[]>(kSize);  // value-initialised: every page is touched
    asm volatile("" ::"r"(block.get()) : "memory");
  }
}

TEST(PeakExtraMemory, IsTheHighestNotTheSum) {
  const auto extra = peak_extra_memory(touch_twice_in_turn);
  if (!extra) GTEST_SKIP() << "this system cannot reset its high-water mark";
  EXPECT_GT(*extra, static_cast<int64_t>(kSize * 9 / 10));
  EXPECT_LT(*extra, static_cast<int64_t>(kSize * 3 / 2));
  EXPECT_LT(*peak_extra_memory([] {}), static_cast<int64_t>(kSize / 10));
}

TEST(InChild, ReturnsTheNumbersAndLeavesTheParentAlone) {
  int counter = 0;
  const auto numbers = in_child([&] {
    return std::vector<double>{1.5, static_cast<double>(++counter)};
  });
  ASSERT_TRUE(numbers);
  EXPECT_EQ(*numbers, (std::vector<double>{1.5, 1.0}));
  EXPECT_EQ(counter, 0);
  EXPECT_FALSE(
      in_child([]() -> std::vector<double> { throw std::runtime_error("expected by the test"); }));
}

}  // namespace
}  // namespace fovea::bench
