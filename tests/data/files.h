// Files made for a test, removed after it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/data/gzip.h"

namespace fovea::data {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    base_ = std::filesystem::path(testing::TempDir()) /
            ("fovea_data_" + std::to_string(getpid()) +
             testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(base_);
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  std::string write(const std::string& name, const std::string& bytes) const {
    const std::string path = (base_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  std::filesystem::path base_;
};

}  // namespace fovea::data
