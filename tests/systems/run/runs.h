// Runs made for a test, removed after it.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "explain/explanation.h"
#include "systems/run/session.h"
#include "train/run/manifest.h"

namespace fovea::systems::test {

class Runs : public testing::Test {
 protected:
  void SetUp() override {
    base_ = std::filesystem::path(testing::TempDir()) /
            ("fovea_runs_" + std::to_string(getpid()) +
             testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(base_);
    std::filesystem::create_directories(base_);
  }
  void TearDown() override { std::filesystem::remove_all(base_); }

  Json train(const std::string& name, TrainRequest request) const {
    request.out = base_ / name;
    fovea::train::Progress silent(fovea::train::Progress::Style::kSilent);
    return systems::train(request, silent);
  }

  static std::string contents(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // What the call throws, in words.
  template <class Call>
  static std::string said(Call&& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "nothing was thrown";
  }

  // A graph of the user's own.
  std::string graph_folder(const std::string& nodes, const std::string& edges) const {
    const auto path = base_ / "own";
    std::filesystem::create_directories(path);
    std::ofstream(path / "nodes.csv") << nodes;
    std::ofstream(path / "edges.csv") << edges;
    return path.string();
  }

  // After a test has changed files of a run: a manifest for what they hold now.
  void sign_again(const std::string& name) const {
    const std::filesystem::path path = base_ / name / fovea::train::kManifestFile;
    fovea::train::Manifest manifest = fovea::train::Manifest::parse(contents(path), path.string());
    for (auto& [file, sum] : fovea::train::Manifest(manifest).files)
      manifest.add(file, contents(base_ / name / file));
    std::ofstream(path, std::ios::binary) << manifest.text();
  }

  // The run opens again, gives the same figures, answers, and draws pictures that pass their own
  // check.
  void check_every_verb(const std::string& name, const std::string& input) const {
    EXPECT_NO_THROW(systems::evaluate(base_ / name, "", "test"));
    systems::Run run = systems::open(base_ / name);
    std::istringstream lines(input);
    std::ostringstream answers;
    systems::predict(run, {lines, "input"}, answers);
    EXPECT_FALSE(answers.str().empty());
    const auto pictures = systems::explain(run, nullptr);
    EXPECT_FALSE(pictures.empty());
    for (const explain::Explanation& picture : pictures) {
      EXPECT_NO_THROW(explain::check(picture));
      EXPECT_FALSE(picture.score.empty() || picture.normaliser.empty() ||
                   picture.structure.empty() || picture.scale.empty())
          << picture.title;
    }
  }

  // Answers line up with the input: where a blank line has no answer, it is named.
  void check_blank_line(const std::string& name, const std::string& good) const {
    systems::Run run = systems::open(base_ / name);
    std::istringstream lines(good + "\n");
    std::ostringstream answers;
    try {
      systems::predict(run, {lines, "input"}, answers);
      ADD_FAILURE() << "a blank line was passed over: " << answers.str();
    } catch (const InvalidArgument& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("input:2: a blank line")) << error.what();
    }
  }

  // A folder of the shared data, or "" where it is absent.
  static std::string data_folder(const std::string& name) {
    const char* given = std::getenv("FOVEA_DATA");
    const char* source = std::getenv("FOVEA_SOURCE_DIR");
    const std::filesystem::path folder =
        (given ? std::filesystem::path(given)
               : std::filesystem::path(source ? source : ".") / "../shared/data") /
        name;
    return std::filesystem::is_directory(folder) ? folder.string() : "";
  }

  std::filesystem::path base_;
};

}  // namespace fovea::systems::test
