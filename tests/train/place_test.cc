// What launchers say of a rank.
#include "train/ranks/place.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "train/usage_error.h"

namespace fovea::train {
namespace {

using Variables = std::map<std::string, std::string>;

struct PlaceTest : testing::Test {
  void TearDown() override {
    for (const auto& [name, value] : set_) ::unsetenv(name.c_str());
  }
  std::optional<Place> place(const Variables& variables) {
    TearDown();
    set_ = variables;
    for (const auto& [name, value] : variables) ::setenv(name.c_str(), value.c_str(), 1);
    return place_in_environment();
  }
  std::string refusal(const Variables& variables) {
    try {
      place(variables);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  }
  Variables set_;
};

TEST_F(PlaceTest, NoLauncher) {
  EXPECT_FALSE(place({}));
  // A batch script of Slurm is one process.
  EXPECT_FALSE(place({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
}

TEST_F(PlaceTest, EachLauncher) {
  const auto torchrun = place({{"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"MASTER_ADDR", "node1"},
                               {"MASTER_PORT", "1234"},
                               {"TORCHELASTIC_USE_AGENT_STORE", "True"},
                               {"TORCHELASTIC_RESTART_COUNT", "2"}});
  ASSERT_TRUE(torchrun);
  EXPECT_EQ(torchrun->rank, 3);
  EXPECT_EQ(torchrun->size, 4);
  EXPECT_EQ(torchrun->address, "node1");
  EXPECT_EQ(torchrun->port, 1234);
  EXPECT_TRUE(torchrun->store_is_launchers);
  EXPECT_EQ(torchrun->restarts, 2);
  const auto slurm =
      place({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_NUM_NODES", "1"}});
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->address, "127.0.0.1");
  EXPECT_EQ(slurm->port, 29500);
  EXPECT_FALSE(slurm->store_is_launchers);
  EXPECT_EQ(place({{"PMI_RANK", "0"}, {"PMI_SIZE", "1"}})->size, 1);  // needs no address
}

TEST_F(PlaceTest, Refused) {
  EXPECT_NE(refusal({{"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_SIZE", "4"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}})
                .find("MASTER_ADDR: not set"),
            std::string::npos);
  EXPECT_NE(refusal({{"RANK", "-1"}, {"WORLD_SIZE", "4"}}).find("RANK=-1: expected"),
            std::string::npos);
  EXPECT_NE(refusal({{"RANK", "0"}, {"WORLD_SIZE", "4x"}}).find("WORLD_SIZE=4x: expected"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea::train
