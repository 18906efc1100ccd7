// What a user types wrong, or means otherwise: each is refused with exit code 2 and one line that
// names it, before anything is made.
#include "tests/cli/binary.h"

namespace fovea::cli::test {
namespace {

class Usage : public InFolder {
 protected:
  // Refused as wrong usage, in one line that holds `part`.
  static void expect_refused(const std::string& arguments, const std::string& part) {
    const Outcome outcome = fovea(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments << "\n" << outcome.output;
    EXPECT_NE(outcome.output.find(part), std::string::npos) << arguments << "\n" << outcome.output;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
  std::string train(const std::string& system, const std::string& rest) const {
    return "train " + system + " --threads 1 --quiet --out " + at("run") + " " + rest;
  }
  void train_small() {
    const Outcome outcome = fovea(train("pooling", "--set bags=40 --epochs 0"));
    ASSERT_EQ(outcome.code, 0) << outcome.output;
  }
};

TEST_F(Usage, NumbersAreReadStrictly) {
  for (const char* seed : {"18446744073709551616", "-1", "010", "''", "1x", "1.5"})
    expect_refused(train("pooling", std::string("--seed ") + seed), "expected a whole number");
  for (const char* epochs : {"100000000000000000000", "''", "-1", "1e3"})
    expect_refused(train("pooling", std::string("--epochs ") + epochs), "--epochs");
  expect_refused(train("pooling", "--checkpoint nan"), "--checkpoint nan: expected a number");
  expect_refused(train("pooling", "--seeds 1000000000000"), "--seeds 1000000000000: expected");
  expect_refused(train("pooling", "--seeds 10000 --folds 10"), "expected at most 10000 runs");
  expect_refused(train("pooling", "--set batch=9223372036854775807"), "batch");
  expect_refused(train("transformer", "--set layers=9223372036854775807"), "expected an integer");
  EXPECT_FALSE(std::filesystem::exists(at("run")));
}

TEST_F(Usage, OptionsThatContradictOrDoNothing) {
  expect_refused(train("pooling", "--data ''"), "--data '': expected a path");
  expect_refused("train pooling --out --quiet", "expected a path, not an option");
  expect_refused(train("pooling", "--resume --overwrite"), "--resume excludes --overwrite");
  expect_refused(train("pooling", "--epochs 1 --set epochs=2"), "--epochs 1:");
  expect_refused(train("pooling", "--set batch=4 --set batch=8"), "batch is given twice");
  expect_refused(train("pooling", "--jobs 2"), "expected --seeds, --folds or --sweep with it");
  expect_refused(train("pooling", "--set bags=40 --epochs 0 --set monitor=frob"),
                 "--set monitor=frob: expected one of");
  expect_refused("train nadaraya-watson --quiet --out " + at("curve") + " --set x=nope",
                 "--set x=nope: expected --data with it");
  std::filesystem::remove_all(at("run"));  // begun before its validation was asked
  expect_refused(train("transformer", "--epochs 0 --set align_layer=99"),
                 "--set align_layer=99: expected -2 to 1");
}

TEST_F(Usage, ALayerOrHeadToAlignByIsOneOfTheModels) {
  const std::string transformer = "--epochs 0 --set method=transformer ";
  expect_refused(train("alignment", transformer + "--set align_layer=99"),
                 "--set align_layer=99: expected -2 to 1, a decoder layer");
  expect_refused(train("alignment", transformer + "--set align_head=99"),
                 "--set align_head=99: expected -1 to 3, a head");
  expect_refused(train("alignment", "--epochs 0 --set method=neural --set align_layer=1"),
                 "--set align_layer=1: of method=transformer, not of method=neural");
  ASSERT_EQ(fovea(train("alignment", transformer)).code, 0);
  expect_refused("evaluate " + at("run") + " --set align_layer=99",
                 "--set align_layer=99: expected -2 to 1, a decoder layer");
  EXPECT_EQ(fovea("evaluate " + at("run") + " --set align_layer=0").code, 0);
}

TEST_F(Usage, WhatTrainingSettledIsNotChangedByAUse) {
  train_small();
  expect_refused("evaluate " + at("run") + " --set rate=5", "fixed when the run was trained");
  expect_refused("evaluate " + at("run") + " --set nothing=5", "no such option");
  std::filesystem::remove_all(at("run"));
  ASSERT_EQ(fovea(train("word-sum", "--epochs 0")).code, 0);
  expect_refused("predict " + at("run") + " --input /dev/null --set tokens=spaces",
                 "fixed when the run was trained; predict may change nothing");
}

TEST_F(Usage, ScoreTakesTheOptionsOfItsMetric) {
  std::ofstream(at("a")) << "the cat\n";
  const std::string files = " --hypothesis " + at("a") + " --reference " + at("a");
  expect_refused("score bleu --zero-based" + files, "--zero-based: an option of aer, not of bleu");
  expect_refused("score chrf --smooth exp" + files, "--smooth: an option of bleu, not of chrf");
  expect_refused("score bleu --tokenize frob" + files, "--tokenize");
  expect_refused("score bleu --smooth frob" + files, "--smooth");
  expect_refused("score bleu --bootstrap -1" + files, "--bootstrap -1: expected a whole number");
  std::ofstream(at("links")) << "0-0\nfrob\n";
  std::ofstream(at("gold")) << "1-1\n1-1\n";
  const Outcome links =
      fovea("score aer --hypothesis " + at("links") + " --reference " + at("gold"));
  EXPECT_EQ(links.code, 1);
  EXPECT_NE(links.output.find(at("links") + ":2: "), std::string::npos) << links.output;
}

TEST_F(Usage, LimitsOfTheEnvironmentAreNamedAndKept) {
  const Outcome wrong = shell("FOVEA_LIMITS=lien=3 fovea list 2>&1");
  EXPECT_EQ(wrong.code, 2) << wrong.output;
  EXPECT_NE(wrong.output.find("did you mean 'line'"), std::string::npos) << wrong.output;
  EXPECT_NE(fovea("--help").output.find("FOVEA_LIMITS"), std::string::npos);
  const Outcome endless =
      shell("FOVEA_LIMITS=file=1M fovea " + train("word-sum", "--data /dev/zero") + " 2>&1");
  EXPECT_EQ(endless.code, 1);
  EXPECT_NE(endless.output.find("more than 1 MiB, the limit `file`"), std::string::npos)
      << endless.output;
  const Outcome large = shell("FOVEA_LIMITS=weights=1M fovea " +
                              train("transformer", "--epochs 0 --set width=1024") + " 2>&1");
  EXPECT_EQ(large.code, 1);
  EXPECT_NE(large.output.find("more than 1 MiB, the limit `weights`"), std::string::npos)
      << large.output;
}

TEST_F(Usage, AWorkingDirectoryThatIsGoneIsSaid) {
  const Outcome gone = shell("mkdir " + at("gone") + " && cd " + at("gone") + " && rmdir " +
                             at("gone") + " && fovea list 2>&1");
  EXPECT_EQ(gone.code, 1);
  EXPECT_NE(gone.output.find("the working directory does not exist any more"), std::string::npos)
      << gone.output;
}

TEST_F(Usage, ALabelCannotCommandTheTerminal) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += i % 2 ? "good\tfine\n" : "b\x1b[31mad\tawful\n";
  std::ofstream(at("t.tsv")) << lines;
  ASSERT_EQ(fovea(train("word-sum", "--epochs 3 --data " + at("t.tsv"))).code, 0);
  const Outcome answer = shell("echo awful | fovea predict " + at("run") + " --threads 1 2>&1");
  EXPECT_EQ(answer.output.find('\x1b'), std::string::npos) << answer.output;
  EXPECT_NE(answer.output.find("b\\x1b[31mad"), std::string::npos) << answer.output;
  const Outcome missing = fovea("evaluate $(printf 'no\\033[31mrun')");
  EXPECT_EQ(missing.output.find('\x1b'), std::string::npos) << missing.output;
}

}  // namespace
}  // namespace fovea::cli::test
