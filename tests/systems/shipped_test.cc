// The runs that come with the program: small, of the settings that the page states, and opened by this program.
#include <gtest/gtest.h>

#include "systems/pages/shipped.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems {
const std::vector<ShippedFile>& shipped_files();
namespace {

using test::Runs;

constexpr size_t kMostBytes = 3'000'000;

class Shipped : public Runs {};

TEST_F(Shipped, AllOfThemAreSmall) {
  size_t bytes = 0;
  for (const ShippedFile& file : shipped_files()) bytes += file.bytes.size();
  EXPECT_GT(bytes, 0u);
  EXPECT_LE(bytes, kMostBytes);
}

TEST_F(Shipped, EachOpensAndHasTheSettingsOfItsTour) {
  for (const System* system : all()) {
    const std::string& name = system->info.name;
    if (!is_shipped(name)) continue;
    unpack_shipped(name, base_ / name);
    const systems::Run run = open(base_ / name);
    for (const std::string& setting : system->tour) {
      const std::string option = setting.substr(0, setting.find('='));
      OptionValues wanted = system->option_values();
      wanted.set(setting);
      EXPECT_EQ(run.config.at("options").at(option), wanted.json().at(option))
          << name << ": run scripts/tour-runs";
    }
    EXPECT_TRUE(run.config.at("data").is_null()) << name;
  }
}

TEST_F(Shipped, AnotherRunInItsPlaceIsReplaced) {
  unpack_shipped("dnc", base_ / "run");
  unpack_shipped("bert", base_ / "run");
  EXPECT_EQ(open(base_ / "run").system->info.name, "bert");
}

}  // namespace
}  // namespace fovea::systems
