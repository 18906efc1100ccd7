// Ranks that would train different things. Differences that a user can make with one program are in tests/cli/ranks_test.py.
#include "train/ranks/agreement.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <thread>

#include "train/ranks/local_store.h"
#include "train/ranks/product_bits.h"
#include "train/usage_error.h"

namespace fovea::train {
namespace {

// What two ranks say who give these facts; empty where they agree.
std::array<std::string, 2> said_by(const Json& first, const Json& second) {
  const LocalStore store;
  std::array<std::string, 2> out;
  const auto rank = [&](int number, const Json& facts) {
    Ranks ranks({.rank = number,
                 .size = 2,
                 .address = "127.0.0.1",
                 .port = store.port(),
                 .store_is_launchers = true},
                60);
    try {
      agree(ranks, facts);
    } catch (const UsageError& error) {
      out[static_cast<size_t>(number)] = error.what();
    }
  };
  std::thread other(rank, 1, second);
  rank(0, first);
  other.join();
  return out;
}

TEST(Agreement, AnotherVersionIsRefusedByBothWithBothValues) {
  Json own = facts_of_program(), other = own;
  ASSERT_TRUE(own.contains("version"));
  EXPECT_EQ(said_by(own, own)[0], "");
  other["version"] = "99.0";
  for (const std::string& words : said_by(own, other)) {
    EXPECT_TRUE(words.starts_with("rank 1 (process ")) << words;
    EXPECT_TRUE(
        words.ends_with("version is \"99.0\", expected " + own["version"].dump() + " (rank 0's)"))
        << words;
  }
}

TEST(Agreement, AFactThatOneRankLacksIsNamed) {
  for (const std::string& words : said_by({{"a", 1}, {"b", 2}}, {{"a", 1}}))
    EXPECT_TRUE(words.ends_with("b is missing, expected 2 (rank 0's)")) << words;
  for (const std::string& words : said_by({{"a", 1}}, {{"a", 1}, {"b", 2}}))
    EXPECT_TRUE(words.ends_with("b is 2, expected missing (rank 0's)")) << words;
}

TEST(Agreement, BitsOfProductsDoNotDependOnThreads) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const std::string of_two = bits_of_products();
  EXPECT_EQ(at::get_num_threads(), 2) << "as it was";
  at::set_num_threads(1);
  EXPECT_EQ(bits_of_products(), of_two);
  at::set_num_threads(before);
}

}  // namespace
}  // namespace fovea::train
