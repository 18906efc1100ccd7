// Every input that is kept, through its target: the corpora that fuzzing starts from, and what it
// once found.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/target.h"

namespace fovea::fuzz {

void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> inputs_of(const std::string& kind, const std::string& target) {
  const fs::path place = fs::path(std::getenv("FOVEA_SOURCE_DIR")) / "tests/fuzz" / kind / target;
  std::vector<fs::path> found;
  if (fs::exists(place))
    for (const auto& entry : fs::directory_iterator(place)) found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

class Replay : public testing::TestWithParam<Target> {};

TEST_P(Replay, KeepsItsPromises) {
  const auto seeds = inputs_of("corpus", GetParam().name);
  EXPECT_FALSE(seeds.empty()) << "a target starts from something";
  auto all = inputs_of("finds", GetParam().name);
  all.insert(all.end(), seeds.begin(), seeds.end());
  for (const fs::path& input : all) {
    SCOPED_TRACE(input.string());
    std::ifstream file(input, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NO_THROW(run(GetParam(), bytes));
    for (const size_t length : {bytes.size() / 2, bytes.size() - std::min<size_t>(1, bytes.size())})
      EXPECT_NO_THROW(run(GetParam(), bytes.substr(0, length))) << "cut to " << length;
  }
}

// A target that refused whatever it is given would keep its promises too.
TEST_P(Replay, TakesSomethingOfWhatItStartsFrom) {
  const Answers before = answers();
  for (const fs::path& input : inputs_of("corpus", GetParam().name)) {
    std::ifstream file(input, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NO_THROW(run(GetParam(), bytes));
  }
  EXPECT_TRUE(answers().taken > before.taken || answers().refused == before.refused);
}

INSTANTIATE_TEST_SUITE_P(All, Replay, testing::ValuesIn(targets()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace fovea::fuzz
