// Random combinations of everything, against the reference. FOVEA_FUZZ_SEED and FOVEA_FUZZ_COUNT
// choose others; a failure prints the seed that repeats it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/engine/comparison.h"
#include "tests/engine/draw.h"

namespace fovea {
namespace {

uint64_t from_environment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

TEST(Fuzz, RandomCombinationsAgreeWithTheReference) {
  const uint64_t first = from_environment("FOVEA_FUZZ_SEED", 1);
  const uint64_t count = from_environment("FOVEA_FUZZ_COUNT", 400);
  int ran = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    cases::Storage random(seed);
    const cases::Case c =
        draw_case([&](int64_t low, int64_t high) { return random.integer(low, high); }, seed);
    if (!well_formed(c) || is_refused(cases::build(c).problem)) continue;
    SCOPED_TRACE("FOVEA_FUZZ_SEED=" + std::to_string(seed));
    ++ran;
    try {
      expect_agreement(c);
    } catch (const std::exception& error) {
      ADD_FAILURE() << c.name() << ": " << error.what();
    }
  }
  std::printf("fuzz: %d of %d ran, seeds %d to %d\n", ran, static_cast<int>(count),
              static_cast<int>(first), static_cast<int>(first + count - 1));
  EXPECT_GT(ran, 0);
}

}  // namespace
}  // namespace fovea
