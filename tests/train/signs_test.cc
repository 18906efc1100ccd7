// Signs of life: when a rank is said to have missed one. Ranks that miss them are in tests/cli/ranks_disturbed_test.py.
#include "train/ranks/signs.h"

#include <gtest/gtest.h>

namespace fovea::train {
namespace {

// Many ranks give signs less often. One that gives them in time must not be called lost.
TEST(Signs, ARankIsLateOnlyAfterItsNextSignIsDue) {
  for (int size = 1; size <= 1024; size *= 2) {
    SCOPED_TRACE(size);
    EXPECT_GT(Signs::late_after(size), Signs::pause(size));
    EXPECT_LT(Signs::late_after(size), 2 * Signs::pause(size));
  }
  EXPECT_EQ(Signs::pause(2), std::chrono::seconds(1));
}

}  // namespace
}  // namespace fovea::train
