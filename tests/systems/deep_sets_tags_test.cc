// Deep Sets with a condition z: shares of the tags that a set lacks, odd files, every verb.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "data/files/file.h"
#include "systems/deep_sets/tag_model.h"
#include "systems/deep_sets/tag_sets.h"
#include "tests/systems/sets.h"

namespace fovea::systems {
namespace {

using deep_sets::Ids;
using test::Sets;

TEST(Tags, SharesDoNotDependOnTheOrderAndLeaveOutWhatIsGiven) {
  torch::manual_seed(3);
  deep_sets::TagScores scores(6, 4, 2);
  const torch::NoGradGuard guard;
  const torch::Tensor z = torch::tensor({{0.5, -1.0}, {0.5, -1.0}, {2.0, 0.0}}, torch::kFloat32);
  const torch::Tensor shares = scores.log_shares({{0, 3, 5}, {5, 0, 3}, {0, 3, 5}}, z).exp();
  EXPECT_TRUE(torch::allclose(shares[0], shares[1], 1e-6, 1e-7));
  EXPECT_FALSE(torch::allclose(shares[0], shares[2], 1e-3, 1e-3)) << "z matters";
  EXPECT_TRUE(torch::allclose(shares.sum(1), torch::ones({3})));
  for (const int64_t given : {0, 3, 5}) EXPECT_EQ(shares[0][given].item<float>(), 0);
  EXPECT_TRUE(scores.log_shares({{}}, z.slice(0, 0, 1)).isfinite().all().item<bool>())
      << "z alone says something too";
}

TEST(Tags, TheLossIsTheMeanOverHiddenTags) {
  const torch::Tensor shares = torch::tensor({{0.5, 0.25, 0.25}, {0.0, 0.2, 0.8}}).log();
  EXPECT_NEAR(deep_sets::missed(shares, {{0, 1}, {2}}).item<double>(),
              -(std::log(0.5) + std::log(0.25) + std::log(0.8)) / 3, 1e-6);
  EXPECT_EQ(deep_sets::found_of(shares[1], {2, 0}), 0.5);
}

TEST_F(Sets, FilesOfTagsAreReadOrRefusedByLine) {
  const auto refused = [&](const std::string& text, const std::string& words) {
    std::ofstream(base_ / "t.jsonl") << text;
    try {
      deep_sets::read_tag_sets((base_ / "t.jsonl").string());
      ADD_FAILURE() << text;
    } catch (const data::FileError& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  };
  const std::string good = "{\"tags\": [\"a\", \"b\", \"a\"], \"z\": [1, -2.5]}\n";
  refused("\n", "no sets of tags");
  refused(good + "sand, sea\n", "t.jsonl:2: expected {\"tags\"");
  refused(good + "{\"tags\": [\"a\", 3], \"z\": [1, 2]}\n", "t.jsonl:2: expected {\"tags\"");
  refused(good + "{\"tags\": [\"a\", \"b\"], \"z\": [1e999, 2]}\n", "t.jsonl:2: ");
  refused(good + "{\"tags\": [\"a\", \"b\"]}\n", "t.jsonl:2: 0 numbers z, expected 2");
  refused(good + "{\"tags\": [\"a\", \"a\"], \"z\": [1, 2]}\n",
          "t.jsonl:2: 1 tag, expected at least 2");
  std::ofstream(base_ / "t.jsonl") << good;
  const auto sets = deep_sets::read_tag_sets((base_ / "t.jsonl").string());
  EXPECT_EQ(sets[0].tags, (std::vector<std::string>{"a", "b"})) << "a set has a tag once";
  EXPECT_EQ(deep_sets::json_line(sets[0]), R"({"tags":["a","b"],"z":[1.0,-2.5]})");
}

// What the given tags do not say, z does: most of what is hidden is found with it, less without. A tenth of the
// tags is left out of each set at random, which nobody can know.
TEST_F(Sets, ZSaysWhichTagsAreMissing) {
  const Json report =
      train("run", {.system = "deep-sets",
                    .set = {"task=tags", "epochs=3", "batch=64", "rate=0.01", "warmup=0"},
                    .threads = 1});
  const Json& metrics = report.at("metrics");
  EXPECT_GE(metrics.at("recall").get<double>(), 0.8);
  EXPECT_LE(metrics.at("recall_without_z").get<double>(),
            metrics.at("recall").get<double>() - 0.05);
  check_every_verb("run", "{\"tags\": [\"sand\", \"sea\"], \"z\": [0.1, 0.6, 0.9]}\n");
  const auto answer = [&](const std::string& z) {
    systems::Run run = systems::open(base_ / "run");
    std::istringstream line("{\"tags\": [\"sand\", \"pier\", \"sea\", \"shells\"], \"z\": " + z +
                            "}\n");
    std::ostringstream out;
    systems::predict(run, {line, "input"}, out);
    return out.str();
  };
  const std::string winter = answer("[0.1, 0.6, 0.9]"), summer = answer("[0.8, 0.9, 0.1]");
  EXPECT_TRUE(winter.starts_with("gulls:") || winter.starts_with("storm:")) << winter;
  EXPECT_TRUE(summer.starts_with("parasol:") || summer.starts_with("ice cream:")) << summer;
}

}  // namespace
}  // namespace fovea::systems
