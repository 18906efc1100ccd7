#include "train/named.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

enum class Fruit { kApple, kPear };
constexpr Named<Fruit, 2> kFruits{{{"apple", Fruit::kApple}, {"pear", Fruit::kPear}}};

TEST(Named, GoesFromNameToValueAndBack) {
  EXPECT_EQ(kFruits.names(), (std::vector<std::string>{"apple", "pear"}));
  EXPECT_EQ(kFruits.of("pear"), Fruit::kPear);
  EXPECT_STREQ(kFruits.name_of(Fruit::kPear), "pear");
}

TEST(Named, AnUnknownNameIsRefusedWithThoseThatExist) {
  try {
    kFruits.of("plum");
    FAIL();
  } catch (const InvalidArgument& error) {
    EXPECT_STREQ(error.what(), "'plum', expected one of apple, pear");
  }
}

}  // namespace
}  // namespace fovea
