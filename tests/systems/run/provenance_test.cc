// A figure says which data, split and settings it comes from; data that change under a run are
// noticed, and items it learned from are never judged as if they were new.
#include "systems/run/provenance.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "data/files/file.h"
#include "io/sha256.h"
#include "data/random.h"
#include "systems/generate.h"
#include "systems/run/machine.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems {
namespace {

namespace fs = std::filesystem;

class Provenance : public test::Runs {
 protected:
  std::string file(const std::string& name) const { return (base_ / name).string(); }
  static std::vector<std::string> lines_of(const std::string& text) {
    std::vector<std::string> out;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) out.push_back(line);
    return out;
  }
  void write(const std::string& name, const std::vector<std::string>& lines) const {
    std::ofstream out(base_ / name);
    for (const std::string& line : lines) out << line << "\n";
  }
  // The same lines in another order, the first `headers` of them in place.
  void shuffle(const std::string& name, size_t headers) const {
    std::vector<std::string> lines = lines_of(contents(base_ / name)),
                             rest(lines.begin() + static_cast<ptrdiff_t>(headers), lines.end());
    data::Random(7).shuffle(rest);
    std::copy(rest.begin(), rest.end(), lines.begin() + static_cast<ptrdiff_t>(headers));
    write(name, lines);
  }
  // Bags of two numbers; in those of label 1 the first is larger.
  std::vector<std::string> bags(int64_t count) const {
    std::vector<std::string> lines = {"bag,label,f0,f1"};
    data::Random random(3);
    for (int64_t bag = 0; bag < count; ++bag)
      for (int64_t row = 0; row < 3; ++row)
        lines.push_back("b" + std::to_string(bag) + "," + std::to_string(bag % 2) + "," +
                        std::to_string(random.normal() + static_cast<double>(bag % 2)) + "," +
                        std::to_string(random.normal()));
    return lines;
  }
  static std::string notes(const Json& report) { return report.value("notes", Json()).dump(); }
  static std::string field(const Json& report, const std::string& name) {
    const std::string text = report.at("signature");
    const size_t at = ("|" + text).find("|" + name + ":");
    if (at == std::string::npos) return "no " + name + " in " + text;
    const size_t from = at + name.size() + 1;
    return text.substr(from, text.find('|', from) - from);
  }
};

TEST_F(Provenance, EveryFigureIsSigned) {
  write("bags.csv", bags(60));
  const Json trained = train("run", {.system = "pooling", .epochs = 1, .threads = 1}),
             read = train("file", {.system = "pooling",
                                   .data = file("bags.csv"),
                                   .epochs = 1,
                                   .seed = 5,
                                   .threads = 1});
  EXPECT_EQ(field(trained, "fovea"), program());
  EXPECT_EQ(field(trained, "data"), "generated-1");
  EXPECT_EQ(field(trained, "split"), "test");
  EXPECT_EQ(field(read, "data"), io::sha256(contents(file("bags.csv"))).substr(0, 12));
  EXPECT_EQ(field(read, "split").substr(0, 5), "test-");
  EXPECT_EQ(field(read, "seed"), "5");
  EXPECT_EQ(field(read, "threads"), "1");
  EXPECT_EQ(field(read, "settings"), field(trained, "settings"));
  const Json judged = evaluate(base_ / "file", "", "test", "cpu", 1);
  EXPECT_EQ(judged.at("signature"), read.at("signature"));
  EXPECT_EQ(evaluate(base_ / "file", "", "test", "cpu", 2).at("signature"), read.at("signature"))
      << "the threads are those that trained";
  EXPECT_NE(field(evaluate(base_ / "file", "", "train", "cpu", 1), "split"), field(read, "split"));
  EXPECT_EQ(
      field(evaluate(base_ / "file", file("bags.csv"), "test", "cpu", 1), "split").substr(0, 4),
      "all-");
  EXPECT_NE(field(train("other", {.system = "pooling", .epochs = 2, .threads = 1}), "settings"),
            field(trained, "settings"));
}

// Threads would meet after every step, and wait for each other.
TEST_F(Provenance, SmallStepsAreTrainedOnOneThread) {
  const auto worth = [](const std::string& name, const std::string& set = "",
                        const std::string& data = "") {
    OptionValues option_values = find(name).option_values();
    if (!set.empty()) option_values.set(set);
    return worth_threads(find(name).step_work(option_values, data));
  };
  for (const char* name : {"alignment", "bahdanau", "beam-search", "document-attention",
                           "hierarchical", "luong", "seq2seq"})
    EXPECT_FALSE(worth(name)) << name;
  EXPECT_FALSE(worth("transformer", "width=64"));
  EXPECT_TRUE(worth("transformer"));
  EXPECT_TRUE(worth("seq2seq", "width=512"));
  EXPECT_TRUE(worth("alignment", "method=neural"));
  EXPECT_TRUE(worth("seq2seq", "", "/text")) << "with thousands of words to choose from";

  const TrainRequest small{.system = "document-attention", .epochs = 0};
  TrainRequest two = small, large = small;
  two.threads = 2;
  large.set = {"hidden=300"};
  EXPECT_EQ(field(train("small", small), "threads"), "1");
  EXPECT_EQ(field(train("two", two), "threads"), "2") << "what is asked for is done";
  EXPECT_EQ(field(train("large", large), "threads"), std::to_string(all_threads()));
}

TEST_F(Provenance, TheSignatureOfMeansNamesEverySeed) {
  const Json report = train("run", {.system = "pooling", .epochs = 0, .seeds = 3, .threads = 1});
  EXPECT_EQ(field(report, "seed"), "1,2,3");
  EXPECT_EQ(field(report, "split"), "test");
  const Json folds = train("folds", {.system = "pooling", .epochs = 0, .folds = 6, .threads = 1});
  EXPECT_EQ(field(folds, "split").substr(0, 9), "6-values-");
}

// For every system that splits a file at random, the order of its lines decides nothing.
TEST_F(Provenance, ReorderedLinesMoveNoItem) {
  const Written memories =
      generate({.system = "general", .set = {"memories=60"}, .out = base_ / "m"});
  const Written sentences =
      generate({.system = "scaled-dot-product", .set = {"sentences=300"}, .out = base_ / "s"});
  const Written topics = generate(
      {.system = "set-outlier", .set = {"task=expansion", "sets=200"}, .out = base_ / "t"});
  const Written letters =
      generate({.system = "relative-positions", .set = {"rows=40"}, .out = base_ / "l"});
  write("bags.csv", bags(80));
  std::vector<std::string> rows = {"x,y"}, reviews, pairs, clouds = {"bag,label,x,y,z"};
  data::Random random(11);
  for (int i = 0; i < 200; ++i) {
    rows.push_back(std::to_string(random.normal()) + "," + std::to_string(random.normal()));
    reviews.push_back((i % 2 ? "good\tnice film " : "bad\tpoor film ") + std::to_string(i));
    pairs.push_back("word " + std::to_string(i) + "\tWort " + std::to_string(i));
    for (int point = 0; point < 3; ++point)
      clouds.push_back("c" + std::to_string(i) + "," + std::to_string(i % 2) + "," +
                       std::to_string(random.normal()) + "," + std::to_string(random.normal()) +
                       "," + std::to_string(random.normal()));
  }
  write("rows.csv", rows);
  write("reviews.tsv", reviews);
  write("pairs.tsv", pairs);
  write("clouds.csv", clouds);
  struct Case {
    std::string system, path;
    std::vector<std::string> set;
    size_t headers;
  };
  for (const Case& c :
       std::vector<Case>{{"pooling", "bags.csv", {"epochs=0"}, 1},
                         {"mil", "bags.csv", {"epochs=0"}, 1},
                         {"nadaraya-watson", "rows.csv", {"test=0.3"}, 1},
                         {"word-sum", "reviews.tsv", {"epochs=0"}, 0},
                         {"seq2seq", "pairs.tsv", {"epochs=0", "tokens=words"}, 0},
                         {"deep-sets", "clouds.csv", {"task=solids", "epochs=0"}, 1},
                         {"general", "m/" + memories.data, {"epochs=0"}, 0},
                         {"scaled-dot-product", "s/" + sentences.data, {"epochs=0"}, 0},
                         {"relative-positions", "l/" + letters.data, {"epochs=0"}, 0},
                         {"set-outlier", "t/" + topics.data, {"task=expansion", "epochs=0"}, 0}}) {
    SCOPED_TRACE(c.system);
    const TrainRequest request{
        .system = c.system, .data = file(c.path), .set = c.set, .threads = 1};
    const std::string run = c.system + "-run", again = c.system + "-again";
    const Json before = train(run, request);
    ASSERT_TRUE(fs::exists(base_ / run / kSplitFile));
    shuffle(c.path, c.headers);
    const Json after = evaluate(base_ / run, "", "test", "cpu", 1);
    EXPECT_EQ(field(after, "split"), field(before, "split"));
    EXPECT_EQ(after.at("items"), before.at("items"));
    EXPECT_NE(notes(after).find("the data have changed since training"), std::string::npos)
        << notes(after);
    EXPECT_NE(notes(after).find("the test items are the same"), std::string::npos);
    EXPECT_EQ(field(train(again, request), "split"), field(before, "split"))
        << "a new run draws the same items";
  }
}

TEST_F(Provenance, TheTestFigureOfReorderedBagsIsTheSame) {
  write("bags.csv", bags(120));
  const Json before =
      train("run", {.system = "mil", .data = file("bags.csv"), .set = {"epochs=3"}, .threads = 1});
  shuffle("bags.csv", 1);
  const Json after = evaluate(base_ / "run", "", "test", "cpu", 1);
  EXPECT_DOUBLE_EQ(after.at("metrics").at("auc").get<double>(),
                   before.at("metrics").at("auc").get<double>());
}

TEST_F(Provenance, ItemsThatWereLearnedFromAreNotJudged) {
  // With folds the order of the file decides, as in published ones: here it must not be moved.
  write("bags.csv", bags(40));
  train("folds",
        {.system = "pooling", .data = file("bags.csv"), .epochs = 0, .folds = 4, .threads = 1});
  shuffle("bags.csv", 1);
  const std::string words = said([&] { evaluate(base_ / "folds", "", "test"); });
  EXPECT_NE(words.find("the data have changed since training (sha256 "), std::string::npos)
      << words;
  EXPECT_NE(words.find(" test items were in the run's training"), std::string::npos) << words;

  // Added items: those there were may change sides.
  write("grown.csv", bags(40));
  train("grown", {.system = "pooling", .data = file("grown.csv"), .epochs = 0, .threads = 1});
  write("grown.csv", bags(61));
  const std::string grown = said([&] { evaluate(base_ / "grown", "", "test"); });
  EXPECT_NE(grown.find("in the run's training"), std::string::npos) << grown;
  EXPECT_NE(said([&] {
              systems::Run run = open(base_ / "grown");
              explain(run, nullptr);
            }).find("in the run's training"),
            std::string::npos);
  // Asked to judge it, it does, and says what it knows.
  const Json judged = evaluate(base_ / "grown", file("grown.csv"), "test");
  EXPECT_EQ(judged.at("items"), 61);
  EXPECT_NE(notes(judged).find("of these 61 items were in the run's training"), std::string::npos)
      << notes(judged);
}

// Sets of pictures are drawn anew each time: they are known by their pictures.
TEST_F(Provenance, PicturesThatWereLearnedFromAreNotJudged) {
  for (const std::string system : {"deep-sets", "set-outlier"}) {
    SCOPED_TRACE(system);
    const fs::path folder = base_ / (system + "-pictures");
    generate({.system = system, .out = folder});
    const Json before =
        train(system, {.system = system, .data = folder.string(), .epochs = 0, .threads = 1});
    EXPECT_EQ(field(before, "split").substr(0, 5), "test-");
    for (const std::string part : {"images-idx3-ubyte", "labels-idx1-ubyte"}) {
      fs::rename(folder / ("train-" + part), folder / part);
      fs::rename(folder / ("t10k-" + part), folder / ("train-" + part));
      fs::rename(folder / part, folder / ("t10k-" + part));
    }
    const std::string words = said([&] { evaluate(base_ / system, "", "test"); });
    EXPECT_NE(words.find(" test items were in the run's training"), std::string::npos) << words;
  }
}

TEST_F(Provenance, ATestPartThatChangesIsSaidAndJudged) {
  fs::create_directories(base_ / "parts");
  std::vector<std::string> reviews;
  for (int i = 0; i < 60; ++i)
    reviews.push_back((i % 2 ? "good\tnice film " : "bad\tpoor film ") + std::to_string(i));
  write("parts/train.tsv", reviews);
  write("parts/test.tsv", {"good\tnice film a", "bad\tpoor film b", "good\tnice film 3"});
  const std::string data = file("parts");
  train("run", {.system = "word-sum", .data = data, .epochs = 0, .threads = 1});
  const std::string unchanged = notes(evaluate(base_ / "run", "", "test"));
  EXPECT_NE(unchanged.find("1 of these 3 items are in the training split too"), std::string::npos)
      << unchanged;
  EXPECT_EQ(unchanged.find("new"), std::string::npos) << unchanged;
  // One more sentence; the one that stood in both parts is no news.
  write("parts/test.tsv",
        {"good\tnice film a", "bad\tpoor film b", "good\tnice film 3", "good\tnice film c"});
  EXPECT_NE(notes(evaluate(base_ / "run", "", "test")).find("1 of 4 test items are new"),
            std::string::npos);
  write("parts/test.tsv", {"good\tnice film a", "good\tnice film 5"});
  EXPECT_NE(said([&] {
              evaluate(base_ / "run", "", "test");
            }).find("1 of 2 test items were in the run's training"),
            std::string::npos);
}

// Without a test split the learned items are judged, each by the others: the note is of those.
TEST_F(Provenance, TheNoteIsOfTheItemsThatWereJudged) {
  std::vector<std::string> rows = {"x,y"};
  for (int i = 0; i < 20; ++i) rows.push_back(std::to_string(i) + "," + std::to_string(i * i));
  write("rows.csv", rows);
  train("run", {.system = "nadaraya-watson",
                .data = file("rows.csv"),
                .set = {"x=x", "y=y", "grid=3"},
                .threads = 1});
  rows.push_back("5.5,30");
  write("rows.csv", rows);
  const Json report = evaluate(base_ / "run", "", "test");
  EXPECT_EQ(report.at("split"), "train");
  EXPECT_NE(notes(report).find("1 of 21 train items are new"), std::string::npos) << notes(report);
}

TEST_F(Provenance, ARunIsNotResumedOnOtherData) {
  write("bags.csv", bags(40));
  TrainRequest request{.system = "pooling", .data = file("bags.csv"), .epochs = 1, .threads = 1};
  train("run", request);
  const std::string was = io::sha256(contents(file("bags.csv")));
  request.resume = true;
  request.epochs = 2;
  fs::create_directories(base_ / "moved");
  fs::copy(base_ / "bags.csv", base_ / "moved/same.csv");
  write("bags.csv", bags(41));
  const std::string words = said([&] { train("run", request); });
  EXPECT_EQ(words, "--resume: " + file("run") + " was started with data of sha256 \"" + was +
                       "\", not \"" + io::sha256(contents(file("bags.csv"))) + "\"");
  request.data = file("moved/same.csv");
  EXPECT_EQ(said([&] { train("run", request); }), "nothing was thrown")
      << "the same contents, wherever they lie";
  request.data.clear();
  request.epochs = 3;
  EXPECT_NE(said([&] { train("run", request); }).find("was started with data of sha256"),
            std::string::npos);
}

// Each seed reads them.
TEST_F(Provenance, DataThatChangeBetweenSeedsAreRefused) {
  write("bags.csv", bags(40));
  std::thread other([&] {
    const auto first = base_ / "run/.training/seed-1/manifest.json";
    while (!std::filesystem::exists(first) && !std::filesystem::exists(base_ / "run/manifest.json"))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    write("next.csv", bags(41));
    std::filesystem::rename(file("next.csv"), file("bags.csv"));
  });
  TrainRequest request{
      .system = "pooling", .data = file("bags.csv"), .epochs = 0, .seeds = 20, .threads = 1};
  const std::string words = said([&] { train("run", request); });
  other.join();
  EXPECT_NE(words.find("the data have changed since its first part was trained (sha256 "),
            std::string::npos)
      << words;
  // Restored, they are gone on with.
  write("bags.csv", bags(40));
  request.resume = true;
  EXPECT_EQ(said([&] { train("run", request); }), "nothing was thrown");
}

TEST_F(Provenance, PackedDataAreTheSameData) {
  write("bags.csv", bags(20));
  ASSERT_EQ(std::system(("gzip -c " + file("bags.csv") + " >" + file("bags.csv.gz")).c_str()), 0);
  const std::string sum = io::sha256(contents(file("bags.csv")));
  for (const char* name : {"bags.csv", "bags.csv.gz"}) {
    const data::ReadLog log;
    data::read_file(file(name));
    EXPECT_EQ(log.sha256(), sum) << name;
  }
}

}  // namespace
}  // namespace fovea::systems
