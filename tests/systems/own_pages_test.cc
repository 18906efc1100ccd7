// What pages say of a user's files, and that the page of the lectures has every system.
#include "systems/pages/own_data.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "systems/pages/lectures.h"
#include "systems/pages/look.h"
#include "systems/system.h"

namespace fovea::systems {
namespace {

TEST(OwnPages, AnIdeaWithoutWhatItSaysOfGeneratedData) {
  EXPECT_EQ(general_idea("One.\n\nTwo. Without data of yours, three."), "One.\n\nTwo.");
  EXPECT_EQ(general_idea("Without a graph of yours, one.\n\nTwo."), "\n\nTwo.");
  EXPECT_EQ(general_idea("Without padding, one."), "Without padding, one.");
  for (const System* system : all()) {
    const std::string idea = general_idea(system->info.idea);
    EXPECT_FALSE(idea.empty()) << system->info.name;
    EXPECT_EQ(idea.find(" of yours"), std::string::npos) << system->info.name;
    for (const char* made_up : {"survey", "nine ", "nines", "film", "review", "great", "food",
                                "milk", "digit", "canon", "polarity. The answer is the sign"})
      EXPECT_EQ((idea + look_at_own(system->info.name, "")).find(made_up), std::string::npos)
          << system->info.name;
  }
}

TEST(OwnPages, TheIntervalIsWilsons) {
  // 7 of 10: scipy.stats.binomtest(7, 10).proportion_ci(method="wilson").
  const Interval some = interval_of(0.7, 10), none = interval_of(0, 5), all = interval_of(1, 5);
  EXPECT_NEAR(some.low, 0.3967781, 1e-6);
  EXPECT_NEAR(some.high, 0.8922087, 1e-6);
  EXPECT_EQ(none.low, 0);
  EXPECT_NEAR(none.high, 0.4344825, 1e-6);
  EXPECT_EQ(all.high, 1);
  EXPECT_EQ(interval_of(0.5, 0).high, 1);
}

TEST(OwnPages, TheNameIsThatOfTheFile) {
  EXPECT_EQ(own_data({{"data", "/a/b/tickets.csv"}}), "tickets.csv");
  EXPECT_EQ(own_data({{"data", "people/"}}), "people");
  EXPECT_EQ(own_data({{"data", nullptr}}), "");
}

TEST(Lectures, EverySystemShowsAnIdea) {
  for (const System* system : all())
    EXPECT_TRUE(std::any_of(ideas().begin(), ideas().end(),
                            [&](const Idea& idea) { return idea.system == system->info.name; }))
        << system->info.name << ": systems/pages/lectures.cc has no idea that it shows";
}

TEST(Lectures, ThePageHasTheIdeasOfThePagesThatAreThere) {
  const explain::ReportOptions page = lectures_page({{.id = "gat", .address = "gat.html"}});
  ASSERT_EQ(page.cards.size(), 2u);  // two lectures come to it
  EXPECT_NE(page.cards[0].id, page.cards[1].id);
  EXPECT_NE(page.cards[0].group, page.cards[1].group);
  EXPECT_EQ(page.cards[1].address, "gat.html");
}

}  // namespace
}  // namespace fovea::systems
