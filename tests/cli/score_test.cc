// The verb `score`, inside this program, so that the sanitisers see it.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/cli/in_process.h"

namespace fovea::cli {
namespace {

Outcome run_score(std::vector<std::string> words) {
  words.insert(words.begin(), "score");
  return run_in_process({score_verb()}, std::move(words));
}

class Score : public testing::Test {
 protected:
  Score()
      : place_(std::filesystem::temp_directory_path() /
               ("fovea-score-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(place_);
  }
  ~Score() override { std::filesystem::remove_all(place_); }

  std::string file(const std::string& name, const std::string& bytes) const {
    std::ofstream(place_ / name, std::ios::binary) << bytes;
    return (place_ / name).string();
  }

 private:
  std::filesystem::path place_;
};

TEST_F(Score, OfAFileWithItselfIsTheBest) {
  const std::string text = file("text", "the cat sat on the mat\nand the dog sat beside it\n"),
                    links = file("links", "1-1 2-2\n1-2\n");
  const auto expect = [](std::vector<std::string> words, const std::string& path,
                         const std::string& answer) {
    words.insert(words.end(), {"--hypothesis", path, "--reference", path});
    const Outcome outcome = run_score(words);
    EXPECT_EQ(outcome.code, kDone) << outcome.err;
    EXPECT_NE(outcome.out.find(answer), std::string::npos) << outcome.out;
  };
  expect({"bleu", "--bootstrap", "50"}, text, "= 100.00");
  expect({"chrf", "--word-order", "2"}, text, "= 100.00");
  expect({"aer", "--zero-based"}, links, "= 0.0000");
}

TEST_F(Score, WrongValuesAreWrongUsage) {
  const std::string text = file("text", "a\n");
  for (const auto& [option, value] : {std::pair("--smooth", "much"),
                                      {"--tokenize", "14a"},
                                      {"--bootstrap", "-1"},
                                      {"--bootstrap", "010"},
                                      {"--bootstrap", ""},
                                      {"--bootstrap", "99999999999999999999"}}) {
    const Outcome outcome =
        run_score({"bleu", "--hypothesis", text, "--reference", text, option, value});
    EXPECT_EQ(outcome.code, kWrongUsage) << option << " " << value;
    EXPECT_NE(outcome.err.find(option), std::string::npos) << outcome.err;
  }
}

// Cut anywhere, and every byte changed.
TEST_F(Score, DamagedAlignmentsAreScoredOrRefusedByName) {
  for (const std::string gold : {"1-1 2p2\n1-2 3-1\n", "1 1 1 S\n2 1 2 P\n"}) {
    const std::string links = file("links", "0-0 1-1\n0-1\n");
    const auto check = [&](const std::string& damaged) {
      const std::string path = file("gold", damaged);
      const Outcome outcome = run_score({"aer", "--hypothesis", links, "--reference", path});
      if (outcome.code == kDone) return;
      EXPECT_EQ(outcome.code, kFailed) << outcome.err;
      EXPECT_TRUE(outcome.err.find(path) != std::string::npos ||
                  outcome.err.find("0/0") != std::string::npos)
          << outcome.err;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
    };
    for (size_t length = 0; length < gold.size(); ++length) check(gold.substr(0, length));
    for (size_t at = 0; at < gold.size(); ++at)
      for (const char byte : {'\0', '-', '9', ' ', '\n', '\xFF'}) {
        std::string damaged = gold;
        damaged[at] = byte;
        check(damaged);
      }
  }
}

}  // namespace
}  // namespace fovea::cli
