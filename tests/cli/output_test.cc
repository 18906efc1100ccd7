// What is printed arrives, or the command says why not; files are replaced, devices are written.
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "tests/cli/binary.h"

namespace fovea::cli {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using test::shell;

constexpr const char* kFull =
    "fovea: standard output: cannot be written: No space left on device\n";

class Output : public test::InFolder {
 protected:
  // A run that `predict` answers from.
  std::string trained() const {
    const Outcome outcome =
        shell("fovea train word-sum --epochs 0 --threads 1 --quiet --out " + at("run"));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    return at("run");
  }
};

TEST_F(Output, LostOutputIsAnErrorForEveryVerb) {
  const std::string run = trained();
  for (const std::string verb :
       {"--help", "--version", "list", "list --json", "list word-sum", "train --help",
        "predict RUN </dev/stdin", "evaluate RUN", "evaluate RUN --json",
        "train word-sum --epochs 0 --threads 1 --quiet --out RUN-again",
        "train word-sum --epochs 0 --threads 1 --quiet --json --out RUN-json",
        "generate general --out RUN-data", "generate general --json --out RUN-data-json",
        "score bleu --hypothesis RUN-text --reference RUN-text",
        "tour --only gradient-masking --quiet --out RUN-tour"}) {
    std::ofstream(run + "-text") << "the cat sat on the mat\n";
    std::string line = verb;
    for (size_t place; (place = line.find("RUN")) != std::string::npos;)
      line.replace(place, 3, run);
    const Outcome outcome = shell("echo a fine film | fovea " + line + " 2>&1 >/dev/full");
    EXPECT_EQ(outcome.code, 1) << verb;
    EXPECT_EQ(outcome.output, kFull) << verb;
  }
}

TEST_F(Output, APredictionThatCannotBeWrittenStopsAtOnce) {
  const std::string run = trained();
  // Were it to go on it would read for ever.
  const Outcome outcome = shell("yes a fine film | timeout 60 sh -c '\"$0\" predict " + run +
                                " 2>&1 >/dev/full' \"$FOVEA_COMMAND\"");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output, kFull);
}

TEST_F(Output, AClosedStandardOutputIsAnErrorAndNoFileTakesItsPlace) {
  EXPECT_EQ(shell("fovea list 2>&1 >&-").code, 1);
  const Outcome outcome =
      shell("fovea train word-sum --epochs 0 --threads 1 --quiet --out " + at("run") + " 2>&1 >&-");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output, "fovea: standard output: cannot be written: Bad file descriptor\n");
  EXPECT_EQ(shell("fovea evaluate " + at("run")).code, 0) << "the run itself is whole";
}

// The system ends a program by a signal here unless it asks not to.
TEST_F(Output, AFileBeyondTheShellsLimitIsAnErrorOfItsWrite) {
  const Outcome outcome =
      shell("ulimit -f 1; fovea generate gat --set nodes=60 --out " + at("graph") + " 2>&1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_NE(outcome.output.find(": cannot be written: File too large\n"), std::string::npos)
      << outcome.output;
  EXPECT_TRUE(outcome.output.starts_with("fovea: " + at("graph/"))) << outcome.output;
}

// From too little to load libtorch to enough: the command says so, and is not ended by it.
TEST_F(Output, TooLittleMemoryIsSaid) {
  for (int megabytes = 320; megabytes <= 440; megabytes += 20) {
    const Outcome outcome =
        shell("ulimit -v " + std::to_string(megabytes * 1024) + "; fovea list 2>&1");
    EXPECT_TRUE(outcome.code == 0 || outcome.code == 1) << megabytes << ": " << outcome.code;
    EXPECT_EQ(outcome.code == 1, outcome.output.starts_with("fovea: ")) << outcome.output;
  }
}

TEST_F(Output, AStackThatIsTooSmallIsSaid) {
  const Outcome outcome = shell("ulimit -s 128; fovea list 2>&1");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output, "fovea: a stack of 128 KiB (ulimit -s), expected 256 or more\n");
}

// As MKL's start may; where nothing is limited, a fault stays a signal.
TEST_F(Output, AFaultAtALimitOfTheAddressSpaceIsSaid) {
  const auto killed = [&](const std::string& run) {
    return "\"$FOVEA_COMMAND\" train word-sum --epochs 100000 --quiet --out " + at(run) +
           " 2>&1 & for i in $(seq 600); do [ -e " + at(run + "/.lock") +
           " ] && break; sleep 0.1; done; kill -SEGV $!; wait $!";
  };
  const Outcome limited = shell("ulimit -v 100000000; " + killed("limited"));
  EXPECT_EQ(limited.code, 1);
  EXPECT_EQ(limited.output, "fovea: not enough memory: the address space is limited (ulimit -v)\n");
  EXPECT_FALSE(std::filesystem::exists(base_ / "limited/.lock"));
  EXPECT_EQ(shell(killed("free")).code, 128 + SIGSEGV);
}

// libgomp ends a process that gets no memory for a thread, in its own words.
TEST_F(Output, ATrainingThatALibraryEndsHasALastWordAndLeavesNoLock) {
  for (int megabytes = 400; megabytes <= 640; megabytes += 60) {
    const Outcome outcome =
        shell("ulimit -v " + std::to_string(megabytes * 1024) +
              "; fovea train pooling --set bags=40 --epochs 0 --quiet --threads 16 --overwrite " +
              "--out " + at("run") + " 2>&1 >/dev/null");
    EXPECT_EQ(outcome.code == 0, outcome.output.empty()) << megabytes << ": " << outcome.output;
    const std::string last = outcome.output.substr(
        outcome.output.rfind('\n', std::max<size_t>(outcome.output.size(), 2) - 2) + 1);
    EXPECT_TRUE(outcome.code == 0 || last.starts_with("fovea: ")) << outcome.output;
    EXPECT_FALSE(std::filesystem::exists(base_ / "run/.lock")) << megabytes;
  }
}

TEST_F(Output, AReadErrorIsNotTheEndOfTheInput) {
  const Outcome outcome = shell("fovea predict " + trained() + " 2>&1 </");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_EQ(outcome.output, "fovea: standard input: cannot be read: Is a directory\n");
}

TEST_F(Output, PredictionsGoWhereTheyAreSent) {
  const std::string run = trained(), answers = at("answers");
  const std::string expected = shell("echo a fine film | fovea predict " + run).output;
  ASSERT_FALSE(expected.empty());
  const auto predict_to = [&](const std::string& target) {
    return shell("echo a fine film | fovea predict " + run + " --output " + target + " 2>&1");
  };

  EXPECT_EQ(predict_to("/dev/null").code, 0);
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_EQ(predict_to("/dev/stdout").output, expected);
  EXPECT_EQ(predict_to("/dev/full").output,
            "fovea: /dev/full: cannot be written: No space left on device\n");

  std::ofstream(answers) << "before\n";
  EXPECT_EQ(
      shell("echo a fine film | fovea predict " + run + " --output /dev/stdout >>" + answers).code,
      0);
  EXPECT_EQ(contents(answers), "before\n" + expected) << "what the shell appends to";

  ::mkfifo(at("pipe").c_str(), 0600);
  EXPECT_EQ(shell("timeout 60 cat " + at("pipe") + " & echo a fine film | fovea predict " + run +
                  " --output " + at("pipe") + "; wait")
                .output,
            expected);
  EXPECT_TRUE(fs::is_fifo(at("pipe")));

  fs::create_symlink("answers", at("link"));
  fs::permissions(answers, fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(predict_to(at("link")).code, 0);
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(contents(answers), expected);
  EXPECT_EQ(fs::status(answers).permissions(), fs::perms::owner_read | fs::perms::owner_write);

  EXPECT_EQ(predict_to(at("absent/answers")).output,
            "fovea: " + at("absent/answers") + ": cannot be created: No such file or directory\n");
}

TEST_F(Output, ATourReplacesNoPageOfOthers) {
  for (const std::string name : {"index.html", "lectures.html", "pooling.html", "picture.svg"}) {
    std::ofstream(at(name)) << "mine";
    const Outcome outcome =
        shell("fovea tour --only pooling --quiet --out " + base_.string() + " 2>&1");
    EXPECT_EQ(outcome.code, 2) << outcome.output;
    EXPECT_NE(outcome.output.find(at(name) + " is there already and is no page of a tour"),
              std::string::npos)
        << outcome.output;
    EXPECT_TRUE(contents(at(name)) == "mine") << name;
    fs::remove(at(name));
  }
}

// Node.js hands on pipes that do not wait.
TEST_F(Output, APipeThatDoesNotWaitIsWaitedFor) {
  const std::string run = trained(), line = "a fine film\n";
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
  const int input = ::dup(ends[0]);  // without O_CLOEXEC
  std::thread writer([&] {
    EXPECT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    // Once it has answered it looks for the next line, and there is none.
    for (int i = 0; i < 1200 && contents(at("answers")).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(::write(ends[1], line.data(), line.size()), static_cast<ssize_t>(line.size()));
    ::close(ends[1]);
  });
  const Outcome outcome =
      shell("fovea predict " + run + " <&" + std::to_string(input) + " 2>&1 >" + at("answers"));
  writer.join();
  ::close(input);
  ::close(ends[0]);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  const std::string answers = contents(at("answers"));
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 2) << answers;
}

TEST_F(Output, AReportIsWrittenAsPredictionsAre) {
  const std::string run = trained();
  std::ofstream(at("own.html")) << "old";
  fs::permissions(at("own.html"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("own.html", at("report.html"));
  EXPECT_EQ(shell("fovea explain " + run + " --out " + at("report.html")).code, 0);
  EXPECT_TRUE(fs::is_symlink(at("report.html")));
  EXPECT_EQ(contents(at("own.html")).substr(0, 15), "<!DOCTYPE html>");
  EXPECT_EQ(fs::status(at("own.html")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace fovea::cli
