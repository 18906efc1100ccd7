// What a RUN's folder holds is a whole run, at every moment, or what a training goes on with; and
// nobody else's.
#include <torch/torch.h>
#include <unistd.h>

#include "systems/run/provenance.h"
#include "systems/run/training.h"
#include "tests/systems/run/runs.h"
#include "train/run/draft.h"
#include "train/run/manifest.h"
#include "train/run/run_lock.h"

namespace fovea::systems {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public test::Runs {
 protected:
  TrainRequest request(std::vector<std::string> set = {"epochs=1"}) const {
    return {.system = "marked-item", .set = std::move(set), .threads = 1};
  }
  // Every file with what it holds.
  std::map<std::string, std::string> snapshot(const std::string& name) const {
    std::map<std::string, std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(base_ / name))
      if (entry.is_regular_file())
        out[fs::relative(entry.path(), base_ / name).string()] = contents(entry.path());
    return out;
  }
  std::string train_says(const std::string& name, const TrainRequest& request) const {
    return said([&] { train(name, request); });
  }
  static void flip(const fs::path& path, size_t at) {
    std::string bytes = contents(path);
    bytes.at(at) = static_cast<char>(bytes.at(at) ^ 1);
    std::ofstream(path, std::ios::binary) << bytes;
  }
};

TEST_F(RunFolderTest, HoldsWhatItsManifestListsAndNothingElse) {
  train("run", request());
  const auto files = snapshot("run");
  const auto manifest =
      train::Manifest::parse(files.at("manifest.json"), (base_ / "run/manifest.json").string());
  std::set<std::string> listed = {"manifest.json"}, found;
  for (const auto& [name, file] : manifest.files) listed.insert(name);
  for (const auto& [name, bytes] : files) found.insert(name);
  EXPECT_EQ(listed, found);
  EXPECT_EQ(manifest.program, program());
}

TEST_F(RunFolderTest, AFlippedBitIsNoticedAndNamed) {
  train("run", {.system = "word-sum", .set = {"epochs=1"}, .threads = 1});
  const auto files = snapshot("run");
  for (const auto& [name, bytes] : files) {
    if (name == "state.safetensors" || name == "metrics.jsonl") continue;  // not read to answer
    for (const size_t at : {bytes.size() / 3, bytes.size() - 2}) {
      flip(base_ / "run" / name, at);
      const std::string words = said([&] { open(base_ / "run"); });
      EXPECT_NE(words.find((base_ / "run" / name).string()), std::string::npos)
          << name << ": " << words;
      flip(base_ / "run" / name, at);
    }
  }
  EXPECT_NO_THROW(open(base_ / "run"));
  flip(base_ / "run/state.safetensors", files.at("state.safetensors").size() / 2);
  TrainRequest more = {.system = "word-sum", .set = {"epochs=2"}, .threads = 1, .resume = true};
  EXPECT_NE(train_says("run", more).find("state.safetensors: damaged"), std::string::npos);
}

TEST_F(RunFolderTest, AFlippedBitInTheStateOfAnUnfinishedRunIsNoticed) {
  train("run", request());
  fs::create_directories(base_ / "half/.training");
  for (const char* name : {"config.json", "state.safetensors"})
    fs::copy(base_ / "run" / name, base_ / "half/.training" / name);
  TrainRequest more = request({"epochs=2"});
  more.resume = true;
  const std::string state = contents(base_ / "half/.training/state.safetensors");
  flip(base_ / "half/.training/state.safetensors", state.size() - 9);
  EXPECT_NE(train_says("half", more).find("state.safetensors: damaged"), std::string::npos)
      << train_says("half", more);
  flip(base_ / "half/.training/state.safetensors", state.size() - 9);
  EXPECT_EQ(train_says("half", more), "nothing was thrown");
}

TEST_F(RunFolderTest, OverwritingTouchesNothingBeforeTheNewRunIsWhole) {
  train("run", request());
  std::ofstream(base_ / "run/notes.txt") << "mine";
  const auto before = snapshot("run");
  TrainRequest wrong = request({"epochs=1", "rate=1e300", "batch=100000"});
  wrong.overwrite = true;
  EXPECT_NE(train_says("run", wrong).find("diverged"), std::string::npos);
  for (const auto& [name, bytes] : before) EXPECT_EQ(contents(base_ / "run" / name), bytes) << name;
  EXPECT_NO_THROW(open(base_ / "run"));

  wrong.data = (base_ / "no-such-file").string();
  train_says("run", wrong);
  wrong.data.clear();
  wrong.device = "cuda:99";
  train_says("run", wrong);
  wrong.device = "cpu";
  wrong.set = {"epochs=1", "frob=1"};
  train_says("run", wrong);
  for (const auto& [name, bytes] : before) EXPECT_EQ(contents(base_ / "run" / name), bytes) << name;

  TrainRequest right = request({"epochs=2"});
  right.overwrite = true;
  train("run", right);
  EXPECT_NE(contents(base_ / "run/model.safetensors"), before.at("model.safetensors"));
  EXPECT_EQ(contents(base_ / "run/notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(base_ / "run/.training"));
  EXPECT_FALSE(fs::exists(base_ / "run/.lock"));
}

TEST_F(RunFolderTest, FoldersOfOthersAreLeftAlone) {
  fs::create_directories(base_ / "theirs");
  std::ofstream(base_ / "theirs/config.json") << "{\"architectures\": [\"Bert\"], \"version\": 1}";
  std::ofstream(base_ / "theirs/model.safetensors") << "weights";
  const auto before = snapshot("theirs");
  for (const auto& [resume, overwrite] : {std::pair(false, false), {true, false}, {false, true}}) {
    TrainRequest one = request();
    one.resume = resume, one.overwrite = overwrite;
    EXPECT_NE(train_says("theirs", one).find("holds files and no run"), std::string::npos);
    EXPECT_EQ(snapshot("theirs"), before);
  }
  EXPECT_NE(said([&] { open(base_ / "theirs"); }).find("no manifest.json there"),
            std::string::npos);
  // Nobody knows what is behind links in a circle, or in a folder that is closed to the user.
  fs::create_symlink("circle", base_ / "circle");
  EXPECT_EQ(said([&] { open(base_ / "circle"); }),
            (base_ / "circle").string() + ": cannot be read: Too many levels of symbolic links");
  // A page's manifest.json is no run's mark.
  fs::create_directories(base_ / "page");
  std::ofstream(base_ / "page/manifest.json") << "{\"name\": \"a page\"}";
  const auto page = snapshot("page");
  TrainRequest over = request();
  over.overwrite = true;
  EXPECT_NE(train_says("page", over).find("manifest.json: expected the manifest of a run"),
            std::string::npos);
  EXPECT_EQ(snapshot("page"), page);

  std::ofstream(base_ / "file") << "text";
  EXPECT_NE(train_says("file", request()).find("a file is there"), std::string::npos);

  fs::create_directories(base_ / "empty");
  EXPECT_EQ(train_says("empty", request()), "nothing was thrown");
  EXPECT_EQ(train_says("new", request({"epochs=1", "frob=1"})).find("--set frob"), 0u);
  EXPECT_FALSE(fs::exists(base_ / "new")) << "a request that was refused leaves nothing";
}

TEST_F(RunFolderTest, AReaderOfARunThatIsReplacedIsToldSo) {
  train("run", request());
  const train::RunFolder reader(base_ / "run");
  TrainRequest again = request({"epochs=2"});
  again.overwrite = true;
  train("run", again);
  EXPECT_EQ(said([&] { reader.read("model.safetensors"); }),
            (base_ / "run").string() +
                ": another training has replaced the run while it was read; try again");
}

TEST_F(RunFolderTest, AFileInTheWayIsKept) {
  train("run", request());
  fs::create_directories(base_ / "run/.training");  // what a killed overwriting leaves
  TrainRequest words = {.system = "word-sum", .set = {"epochs=0"}, .threads = 1, .overwrite = true};
  std::ofstream(base_ / "run/vocabulary") << "my own list of words";
  train("run", words);
  EXPECT_EQ(contents(base_ / "run/vocabulary.before"), "my own list of words");
  EXPECT_NO_THROW(open(base_ / "run"));
}

TEST_F(RunFolderTest, ATrainingThatIsRefusedBeforeAnythingIsSavedLeavesNothing) {
  EXPECT_NE(train_says("new", request({"monitor=frob"})).find("--set monitor=frob"),
            std::string::npos);
  EXPECT_FALSE(fs::exists(base_ / "new"));
  const TrainRequest wild = request({"epochs=1", "rate=1e300", "batch=100000"});
  EXPECT_NE(train_says("new", wild).find("diverged"), std::string::npos);
  EXPECT_FALSE(fs::exists(base_ / "new"));
  TrainRequest seeds = wild;
  seeds.seeds = 2;
  EXPECT_NE(train_says("new", seeds).find("diverged"), std::string::npos);
  EXPECT_FALSE(fs::exists(base_ / "new"));
  EXPECT_EQ(train_says("new", request()), "nothing was thrown");
}

TEST_F(RunFolderTest, AStateIsNotGoneOnWithUnasked) {
  TrainRequest first = request({"epochs=3"}), other = request({"epochs=3"});
  train("run", first);
  fs::create_directories(base_ / "half/.training");
  for (const char* name : {"config.json", "state.safetensors"})
    fs::copy(base_ / "run" / name, base_ / "half/.training" / name);
  other.seed = 2;
  EXPECT_NE(train_says("half", other).find("holds an unfinished run already: --resume continues"),
            std::string::npos);
  other.resume = true;
  EXPECT_EQ(train_says("half", other),
            "--resume: " + (base_ / "half").string() + " was started with seed 1, not 2");
  // A state under another configuration, as a hand or a half-done copy leaves it.
  std::string config = contents(base_ / "half/.training/config.json");
  const size_t at = config.find("\"seed\": 1");
  ASSERT_NE(at, std::string::npos);
  std::ofstream(base_ / "half/.training/config.json") << config.replace(at, 9, "\"seed\": 2");
  EXPECT_NE(train_says("half", other).find("the state of another configuration"), std::string::npos)
      << train_says("half", other);
  other.resume = false, other.overwrite = true;
  train("half", other);
  train("fresh", [&] {
    TrainRequest fresh = request({"epochs=3"});
    fresh.seed = 2;
    return fresh;
  }());
  EXPECT_EQ(contents(base_ / "half/model.safetensors"),
            contents(base_ / "fresh/model.safetensors"));
}

TEST_F(RunFolderTest, ACopyElsewhereIsTheSameRun) {
  TrainRequest two = request();
  two.seeds = 2;
  const Json report = train("run", two);
  fs::copy(base_ / "run", base_ / "copy", fs::copy_options::recursive);
  fs::remove_all(base_ / "run");
  EXPECT_EQ(evaluate(base_ / "copy", "", "test").at("metrics"), report.at("metrics"));
  two.resume = true;
  two.set = {"epochs=2"};
  EXPECT_EQ(train("copy", two).at("runs").size(), 2u);
}

TEST_F(RunFolderTest, FewerEpochsThanWereTrainedAreRefused) {
  train("run", request({"epochs=3"}));
  TrainRequest fewer = request({"epochs=2"});
  fewer.resume = true;
  EXPECT_EQ(train_says("run", fewer),
            "--resume: " + (base_ / "run").string() + " was started with epochs 3, not 2");
}

TEST_F(RunFolderTest, OneTrainingAtATime) {
  fs::create_directories(base_ / "run");
  {
    const train::RunLock held(base_ / "run", train::RunLock::Kind::kExclusive);
    const std::string words = train_says("run", request());
    EXPECT_NE(words.find("process " + std::to_string(getpid()) + " on "), std::string::npos);
    EXPECT_NE(words.find("is training into it"), std::string::npos) << words;
  }
  EXPECT_FALSE(fs::exists(base_ / "run/.lock"));
  {
    const train::RunLock one(base_ / "run", train::RunLock::Kind::kShared);
    const train::RunLock other(base_ / "run", train::RunLock::Kind::kShared);
    EXPECT_NE(train_says("run", request()).find("is training into it"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(base_ / "run/.lock"));
}

TEST_F(RunFolderTest, TheLockOfTheDeadIsTakenOverAndSaid) {
  fs::create_directories(base_ / "run");
  std::ofstream(base_ / "run/.lock") << "process 999999 on elsewhere";
  const train::RunLock lock(base_ / "run", train::RunLock::Kind::kExclusive);
  EXPECT_EQ(lock.taken_from(), "process 999999 on elsewhere");
  EXPECT_NE(contents(base_ / "run/.lock").find("process " + std::to_string(getpid())),
            std::string::npos);
}

// A publication killed after each of its renames: the folder is the new run at every moment, for a
// reader and for the next training.
TEST_F(RunFolderTest, APublicationThatWasKilledIsFinished) {
  train("old", {.system = "word-sum", .set = {"epochs=0"}, .threads = 1});
  train("new", request());
  const auto moved = train::RunFolder(base_ / "new").manifest().files;
  std::vector<std::string> names;
  for (const auto& [name, file] : moved) names.push_back(name);
  for (size_t done = 0; done <= names.size(); ++done) {
    SCOPED_TRACE(done);
    const fs::path run = base_ / ("killed-" + std::to_string(done));
    fs::copy(base_ / "old", run);
    std::ofstream(run / "notes.txt") << "mine";
    fs::copy(base_ / "new", run / ".ready");
    for (size_t i = 0; i < done; ++i) fs::rename(run / ".ready" / names[i], run / names[i]);
    EXPECT_EQ(open(run).config.at("system"), "marked-item");
    train::finish_publication(run);
    EXPECT_FALSE(fs::exists(run / ".ready"));
    EXPECT_FALSE(fs::exists(run / "vocabulary")) << "a file of the old run";
    EXPECT_EQ(contents(run / "notes.txt"), "mine");
    EXPECT_EQ(open(run).config.at("system"), "marked-item");
    EXPECT_NO_THROW(evaluate(run, "", "test"));
  }
}

// Parts are trained at the same time: one must not clear away what another is writing.
TEST_F(RunFolderTest, APartLeavesAloneWhatOthersAreWriting) {
  TrainRequest part = request();
  part.seeds = 2;
  part.only = "seed-1";
  train("run", part);
  const fs::path others = base_ / "run/.training/.fovea-999999-0.unfinished";
  std::ofstream(others) << "half a file";
  const auto written = fs::last_write_time(base_ / "run/.training/config.json");
  part.only = "seed-2";
  train("run", part);
  EXPECT_TRUE(fs::exists(others));
  EXPECT_EQ(fs::last_write_time(base_ / "run/.training/config.json"), written);
  part.only.clear();
  part.resume = true;
  EXPECT_EQ(train("run", part).at("runs").size(), 2u);
  EXPECT_FALSE(fs::exists(base_ / "run/.training"));
}

// A disk that fails while a part's files are moved into place: the part is complete, and stays so.
TEST_F(RunFolderTest, APartThatWasNotAllInItsPlaceIsNotLost) {
  TrainRequest part = request();
  part.seeds = 2;
  for (const char* name : {"seed-1", "seed-2"}) {
    part.only = name;
    train("run", part);
    const fs::path place = base_ / "run/.training" / name;
    fs::create_directories(place / ".ready");
    for (const char* file : {"manifest.json", "model.safetensors"})
      fs::rename(place / file, place / ".ready" / file);
  }
  part.only.clear();
  part.resume = true;
  const Json report = train("run", part);
  EXPECT_TRUE(fs::exists(base_ / "run/seed-1/model.safetensors"));
  EXPECT_EQ(evaluate(base_ / "run", "", "test").at("metrics"), report.at("metrics"));
}

TEST_F(RunFolderTest, SeveralRunsAreReplacedTogether) {
  TrainRequest three = request();
  three.seeds = 3;
  train("run", three);
  std::ofstream(base_ / "run/seed-2/notes.txt") << "mine";
  const auto before = snapshot("run");
  TrainRequest two = request({"epochs=1", "classes=4"});
  two.seeds = 2;
  two.overwrite = true;
  two.only = "seed-1";
  train("run", two);
  for (const auto& [name, bytes] : before) EXPECT_EQ(contents(base_ / "run" / name), bytes) << name;
  EXPECT_EQ(evaluate(base_ / "run", "", "test").at("runs").size(), 3u);

  two.only.clear();
  two.overwrite = false;
  two.resume = true;
  const Json report = train("run", two);
  EXPECT_EQ(report.at("runs").size(), 2u);
  EXPECT_EQ(evaluate(base_ / "run", "", "test").at("metrics"), report.at("metrics"));
  EXPECT_FALSE(fs::exists(base_ / "run/seed-3"));
  EXPECT_EQ(contents(base_ / "run/seed-2/notes.txt"), "mine");
  EXPECT_FALSE(fs::exists(base_ / "run/.training"));

  TrainRequest more = two;  // seeds may be added
  more.seeds = 3;
  EXPECT_EQ(train("run", more).at("runs").size(), 3u);
  more.seeds = 2;
  EXPECT_NE(train_says("run", more).find("was started with seeds 3, not 2"), std::string::npos);
}

}  // namespace
}  // namespace fovea::systems
