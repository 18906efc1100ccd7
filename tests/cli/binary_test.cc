// The command as users run it.
#include "tests/cli/binary.h"

#include <random>

namespace fovea::cli {
namespace {

using test::contents;
using test::fovea;
using test::Outcome;

TEST(Binary, VersionNamesEveryPart) {
  const Outcome outcome = fovea("--version");
  EXPECT_EQ(outcome.code, 0);
  for (const char* part : {"fovea ", "libtorch ", "simd ", "threads ", "gpu "}) {
    EXPECT_NE(outcome.output.find(part), std::string::npos) << part << " missing in\n"
                                                            << outcome.output;
  }
}

// libgomp reads its variables when it is loaded, and says then what it has read.
TEST(Binary, IdleThreadsSleepUnlessTheUserSaysOtherwise) {
  const auto says = [](const std::string& environment) {
    return fovea("--version",
                 "env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT OMP_DISPLAY_ENV=verbose " + environment)
        .output;
  };
  EXPECT_NE(says("").find("GOMP_SPINCOUNT = '0'"), std::string::npos) << says("");
  EXPECT_NE(says("OMP_WAIT_POLICY=active").find("OMP_WAIT_POLICY = 'ACTIVE'"), std::string::npos);
  EXPECT_NE(says("GOMP_SPINCOUNT=777").find("GOMP_SPINCOUNT = '777'"), std::string::npos);
}

TEST(Binary, ThreadsAreAsManyAsTheProcessMayUseOrTheUserSays) {
  EXPECT_NE(fovea("--version", "taskset -c 0 env -u OMP_NUM_THREADS").output.find("threads  1\n"),
            std::string::npos);
  EXPECT_NE(fovea("--version", "env OMP_NUM_THREADS=1").output.find("threads  1\n"),
            std::string::npos);
}

TEST(Binary, WrongUsageExitsTwoWithOneLine) {
  for (const char* arguments : {"", "--no-such-option", "qqqqqq"}) {
    const Outcome outcome = fovea(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.output.find('\n'), outcome.output.size() - 1) << outcome.output;
  }
}

TEST(Binary, AFileThatIsJudgedIsNoSplitOfIt) {
  const auto base = std::filesystem::temp_directory_path() /
                    ("fovea-judge-" + std::to_string(std::random_device{}()));
  const std::string run = (base / "run").string(), file = (base / "three.tsv").string();
  const Outcome trained = fovea("train word-sum --epochs 0 --threads 1 --quiet --out " + run);
  ASSERT_EQ(trained.code, 0) << trained.output;
  std::ofstream(file) << "positive\tgreat\nnegative\tawful\npositive\tfine\n";
  EXPECT_EQ(fovea("evaluate " + run + " --data " + file)
                .output.find("word-sum, 3 test items (" + file + ")\n"),
            0u);
  std::ofstream(file) << "positive\tgreat\n";
  EXPECT_EQ(fovea("evaluate " + run + " --data " + file)
                .output.find("word-sum, 1 test item (" + file + ")\n"),
            0u);
  std::filesystem::remove_all(base);
}

TEST(Binary, PredictNamesALineAtFaultAndGoesOn) {
  const auto base = std::filesystem::temp_directory_path() /
                    ("fovea-fault-" + std::to_string(std::random_device{}()));
  const std::string run = (base / "run").string(), file = (base / "gaps").string();
  const Outcome trained = fovea("train gradient-masking --threads 1 --quiet --out " + run);
  ASSERT_EQ(trained.code, 0) << trained.output;
  std::ofstream(file) << "0\nwide\n0\n";
  const Outcome outcome =
      fovea("predict " + run + " --input " + file + " --output " + file + ".out");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output,
            "fovea: " + file + ":2: e1 - e2: expected a finite number, found 'wide'\n");
  const std::string answers = contents(file + ".out"),
                    first = answers.substr(0, answers.find('\n') + 1);
  EXPECT_GT(first.size(), 1u);
  EXPECT_EQ(answers, first + "\n" + first);
  std::filesystem::remove_all(base);
}

// The number of threads can decide the last bits, and must not follow from --jobs.
TEST(Binary, SideBySideTakesAsManyThreadsAsOneAfterAnother) {
  const auto base = std::filesystem::temp_directory_path() /
                    ("fovea-threads-" + std::to_string(std::random_device{}()));
  const std::string train = "train scaled-dot-product --seeds 2 --epochs 1 --quiet --out ";
  ASSERT_EQ(fovea(train + (base / "apart").string() + " --jobs 2").code, 0);
  ASSERT_EQ(fovea(train + (base / "row").string()).code, 0);
  for (const char* file : {"seed-1/model.safetensors", "seed-2/model.safetensors", "config.json"}) {
    EXPECT_FALSE(contents(base / "row" / file).empty());
    EXPECT_EQ(contents(base / "apart" / file), contents(base / "row" / file)) << file;
  }
  std::filesystem::remove_all(base);
}

TEST(Binary, RunsSideBySideAreTheRunsOneAfterAnother) {
  const auto base = std::filesystem::temp_directory_path() /
                    ("fovea-jobs-" + std::to_string(std::random_device{}()));
  const std::string train = "train pooling --folds 3 --epochs 1 --threads 1 --quiet --out ";
  const Outcome apart = fovea(train + (base / "apart").string() + " --jobs 2");
  ASSERT_EQ(apart.code, 0) << apart.output;
  ASSERT_EQ(fovea(train + (base / "row").string()).code, 0);
  for (const char* fold : {"fold-1", "fold-2", "fold-3"}) {
    const std::string weights = contents(base / "apart" / fold / "model.safetensors");
    EXPECT_FALSE(weights.empty());
    EXPECT_EQ(weights, contents(base / "row" / fold / "model.safetensors")) << fold;
  }
  const Outcome failed = fovea(train + (base / "none").string() + " --jobs 2 --data /no/such/file");
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.output, "fovea: /no/such/file: no such file\n");
  std::filesystem::remove_all(base);
}

}  // namespace
}  // namespace fovea::cli
