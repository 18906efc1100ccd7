// The command line's frame, with verbs made for the test: exit codes, one line for a failure,
// suggestions.
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "tests/cli/in_process.h"

namespace fovea::cli {
namespace {

Outcome run_with(const std::vector<std::string>& arguments) {
  static const std::vector<Verb> verbs = {
      {"train", "train a system", "fovea train transformer",
       [](CLI::App& app) {
         auto epochs = std::make_shared<int>(0);
         app.add_option("--epochs", *epochs, "passes over the data")->required();
         return [epochs] { return *epochs == 3 ? kDone : kFailed; };
       }},
      {"refuse", "throw a usage error", "fovea refuse",
       [](CLI::App&) { return []() -> int { throw UsageError("system: none given"); }; }},
      {"break", "throw any other error", "fovea break",
       [](CLI::App&) {
         return []() -> int {
           throw std::runtime_error(
               "disk: full\nException raised from write at disk.cpp:7\nframe #0");
         };
       }},
  };
  return run_in_process(verbs, arguments);
}

TEST(Command, RunsTheVerbWithItsOptions) {
  const Outcome outcome = run_with({"train", "--epochs", "3"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.err, "");
}

TEST(Command, ExitCodeIsTheVerbs) { EXPECT_EQ(run_with({"train", "--epochs", "4"}).code, kFailed); }

TEST(Command, AMisspeltVerbIsAnsweredWithTheNearest) {
  const Outcome outcome = run_with({"tarin"});
  EXPECT_EQ(outcome.code, kWrongUsage);
  EXPECT_EQ(outcome.err, "fovea: unknown verb 'tarin': did you mean 'train'?\n");
}

TEST(Command, AVerbLikeNoOtherIsAnsweredWithAllOfThem) {
  const Outcome outcome = run_with({"quantise"});
  EXPECT_EQ(outcome.code, kWrongUsage);
  EXPECT_EQ(outcome.err, "fovea: unknown verb 'quantise'; there are train, refuse, break\n");
}

TEST(Command, AMisspeltOptionIsAnsweredWithTheNearest) {
  for (const char* typed : {"--epoch", "--epoch=3"}) {
    const Outcome outcome = run_with({"train", "--epochs", "3", typed});
    EXPECT_EQ(outcome.code, kWrongUsage);
    EXPECT_EQ(outcome.err, "fovea: train: unknown option '--epoch': did you mean '--epochs'?\n");
  }
  EXPECT_EQ(run_with({"--versoin"}).err,
            "fovea: unknown option '--versoin': did you mean '--version'?\n");
}

// CLI11 looks for what is required first; a user who misspelt the required option must still hear
// about the spelling.
TEST(Command, AMisspeltRequiredOptionIsAnsweredWithTheNearest) {
  const Outcome outcome = run_with({"train", "--epcohs", "3"});
  EXPECT_EQ(outcome.code, kWrongUsage);
  EXPECT_EQ(outcome.err, "fovea: train: unknown option '--epcohs': did you mean '--epochs'?\n");
}

TEST(Command, AStrayArgumentIsNamed) {
  const Outcome outcome = run_with({"train", "--epochs", "3", "stray"});
  EXPECT_EQ(outcome.code, kWrongUsage);
  EXPECT_NE(outcome.err.find("'stray' was not expected"), std::string::npos) << outcome.err;
}

TEST(Command, MissingAndMalformedOptionsAreWrongUsage) {
  EXPECT_EQ(run_with({"train"}).code, kWrongUsage);
  EXPECT_EQ(run_with({"train", "--epochs", "many"}).code, kWrongUsage);
  EXPECT_EQ(run_with({}).code, kWrongUsage);
}

TEST(Command, FailuresAreOneLine) {
  const Outcome refused = run_with({"refuse"});
  EXPECT_EQ(refused.code, kWrongUsage);
  EXPECT_EQ(refused.err, "fovea: system: none given\n");
  const Outcome broken = run_with({"break"});
  EXPECT_EQ(broken.code, kFailed);
  EXPECT_EQ(broken.err, "fovea: disk: full\n");
}

TEST(Command, HelpListsVerbsAndShowsTheExample) {
  const Outcome all = run_with({"--help"});
  EXPECT_EQ(all.code, kDone);
  EXPECT_NE(all.out.find("train a system"), std::string::npos) << all.out;
  const Outcome one = run_with({"train", "--help"});
  EXPECT_EQ(one.code, kDone);
  EXPECT_NE(one.out.find("fovea train transformer"), std::string::npos) << one.out;
}

TEST(Command, VersionComesFromTheCaller) {
  const Outcome outcome = run_with({"--version"});
  EXPECT_EQ(outcome.code, kDone);
  EXPECT_EQ(outcome.out, "fovea 1.2.3\n");
}

}  // namespace
}  // namespace fovea::cli
