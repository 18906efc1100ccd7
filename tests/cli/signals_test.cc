// The command told to stop: it saves where there is something to save, answers soon where there is
// not, and leaves no child behind.
#include <signal.h>

#include <chrono>
#include <functional>
#include <sstream>
#include <thread>

#include "tests/cli/binary.h"

namespace fovea::cli::test {
namespace {

namespace fs = std::filesystem;

class Signals : public InFolder {
 protected:
  // The command in the background; its process.
  pid_t start(const std::string& arguments) const {
    const pid_t pid = fork();
    if (pid == 0) {
      const std::string line = std::string("exec '") + std::getenv("FOVEA_COMMAND") + "' " +
                               arguments + " >" + at("out") + " 2>" + at("err");
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    return pid;
  }
  // Its exit code; that of a shell where a signal ended it.
  static int wait_for(pid_t pid) {
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // Patient: beside other programs a start may take long.
  static bool eventually(const std::function<bool()>& holds) {
    for (int i = 0; i < 2400; ++i) {
      if (holds()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }
  // That of a fold whose training is under way.
  static fs::path state_of(const fs::path& run, const std::string& fold) {
    return run / ".training" / fold / ".training/state.safetensors";
  }
  static bool lives(pid_t pid) { return kill(pid, 0) == 0; }
  static std::vector<pid_t> children_of(pid_t pid) {
    std::vector<pid_t> children;
    std::istringstream list(
        contents("/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid) + "/children"));
    for (pid_t child = 0; list >> child;) children.push_back(child);
    return children;
  }
};

TEST_F(Signals, EachOfTheThreeSavesAndSaysWhichInItsCode) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const fs::path run = base_ / std::to_string(signal);
    const pid_t pid = start("train pooling --threads 1 --quiet --checkpoint 0 --epochs 100000 " +
                            ("--out " + run.string()));
    const fs::path state = run / ".training/state.safetensors";
    ASSERT_TRUE(eventually([&] { return fs::exists(state); }));
    kill(pid, signal);
    EXPECT_EQ(wait_for(pid), 128 + signal);
    EXPECT_NE(contents(at("err")).find("--resume"), std::string::npos) << contents(at("err"));
    EXPECT_TRUE(fs::exists(state));
  }
}

TEST_F(Signals, AnIgnoredHangupStaysIgnored) {
  const Outcome outcome =
      shell("trap '' HUP; fovea train pooling --threads 1 --quiet --set bags=40 --epochs 1 --out " +
            at("run") + " 2>&1 & pid=$!; kill -HUP $pid; wait $pid");
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST_F(Signals, ReadingIsLeftAtOnce) {
  // A pipe that nobody fills keeps the run reading.
  ASSERT_EQ(shell("mkfifo " + at("pipe")).code, 0);
  const pid_t pid =
      start("train word-sum --threads 1 --quiet --data " + at("pipe") + " --out " + at("run"));
  // Opening succeeds once the other end reads.
  std::ofstream writer(at("pipe"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(fs::exists(base_ / "run/.lock"));
  kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 128 + SIGTERM);
  EXPECT_EQ(contents(at("err")), "fovea: stopped before training began\n");
  EXPECT_FALSE(fs::exists(base_ / "run"));
}

TEST_F(Signals, ReadingForSeveralRunsIsLeftAtOnce) {
  ASSERT_EQ(shell("mkfifo " + at("pipe")).code, 0);
  const pid_t pid = start("train word-sum --threads 1 --quiet --seeds 2 --jobs 2 --data " +
                          at("pipe") + " --out " + at("run"));
  std::ofstream writer(at("pipe"));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(pid, SIGHUP);
  EXPECT_EQ(wait_for(pid), 128 + SIGHUP);
  EXPECT_EQ(contents(at("err")), "fovea: stopped before training began\n");
  EXPECT_FALSE(fs::exists(base_ / "run/.lock"));
}

// Far more sentences to translate than to learn from.
TEST_F(Signals, EvaluationIsLeftAtOnceAndTheWeightsAreKept) {
  const fs::path data = base_ / "data";
  fs::create_directories(data);
  for (const auto& [part, lines] : {std::pair("train", 8), {"val", 4}, {"test", 100'000}})
    for (const char* language : {".en", ".de"}) {
      std::ofstream file(data / (std::string(part) + language));
      for (int i = 0; i < lines; ++i) file << "a b c d e f g h\n";
    }
  const pid_t pid =
      start("train seq2seq --threads 1 --quiet --epochs 1 --set tokens=words --set width=16 " +
            ("--set embedding=16 --data " + data.string() + " --out " + at("run")));
  ASSERT_TRUE(eventually([&] {
    return fs::exists(base_ / "run/manifest.json") && !fs::exists(base_ / "run/.ready");
  }));
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  kill(pid, SIGTERM);
  EXPECT_EQ(wait_for(pid), 128 + SIGTERM);
  EXPECT_EQ(contents(at("err")), "fovea: stopped during evaluation; the weights are saved\n");
  EXPECT_FALSE(fs::exists(base_ / "run/.lock"));
  EXPECT_TRUE(fs::exists(base_ / "run/model.safetensors"));
}

// The first asks to save, the second does not wait for it.
TEST_F(Signals, ASecondOneEndsTheProcessAndItsChildren) {
  const fs::path run = base_ / "run";
  const pid_t pid =
      start("train pooling --threads 1 --quiet --checkpoint 0 --epochs 100000 --folds 2 --jobs 2 " +
            ("--out " + run.string()));
  ASSERT_TRUE(eventually([&] { return fs::exists(state_of(run, "fold-2")); }));
  const std::vector<pid_t> children = children_of(pid);
  EXPECT_EQ(children.size(), 2u);
  for (const pid_t child : children) kill(child, SIGSTOP);  // which cannot save
  kill(pid, SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ASSERT_TRUE(lives(pid)) << "it did not wait for its children";
  kill(pid, SIGINT);
  EXPECT_EQ(wait_for(pid), 130);
  for (const pid_t child : children) {
    kill(child, SIGCONT);
    EXPECT_TRUE(eventually([&] { return !lives(child); }));
  }
}

TEST_F(Signals, ChildrenEndWithTheirParentHoweverItEnds) {
  for (const int signal : {SIGTERM, SIGHUP, SIGKILL}) {
    const fs::path run = base_ / std::to_string(signal);
    const pid_t pid = start(
        "train pooling --threads 1 --quiet --checkpoint 0 --epochs 100000 --folds 2 --jobs 2 " +
        ("--out " + run.string()));
    ASSERT_TRUE(eventually([&] {
      return fs::exists(state_of(run, "fold-1")) && fs::exists(state_of(run, "fold-2"));
    }));
    const std::vector<pid_t> children = children_of(pid);
    EXPECT_EQ(children.size(), 2u);
    kill(pid, signal);
    EXPECT_EQ(wait_for(pid), 128 + signal);
    for (const pid_t child : children)
      EXPECT_TRUE(eventually([&] { return !lives(child); })) << signal;
  }
}

TEST_F(Signals, AChildThatIsKilledIsNamed) {
  const pid_t pid = start(
      "train pooling --threads 1 --quiet --checkpoint 0 --epochs 100000 --folds 2 --jobs 2 "
      "--out " +
      at("run"));
  ASSERT_TRUE(eventually([&] { return fs::exists(state_of(base_ / "run", "fold-2")); }));
  const std::vector<pid_t> children = children_of(pid);
  ASSERT_FALSE(children.empty());
  kill(children.front(), SIGKILL);
  EXPECT_EQ(wait_for(pid), 1);
  EXPECT_NE(contents(at("err")).find(": ended by signal 9"), std::string::npos)
      << contents(at("err"));
}

TEST_F(Signals, ATourBeginsAnew) {
  const pid_t pid = start("tour --threads 1 --quiet --only transformer --out " + at("tour"));
  ASSERT_TRUE(
      eventually([&] { return fs::exists(base_ / "tour/transformer/.training/config.json"); }));
  kill(pid, SIGINT);
  EXPECT_EQ(wait_for(pid), 130);
  EXPECT_EQ(contents(at("err")).find("--resume"), std::string::npos) << contents(at("err"));
}

}  // namespace
}  // namespace fovea::cli::test
