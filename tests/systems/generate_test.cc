// Generated items as files: what is read back from them is what was generated, its truth included.
#include <torch/torch.h>

#include <algorithm>
#include <fstream>

#include "systems/generate.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

class Generate : public test::Runs {
 protected:
  Written written(const std::string& system, const std::vector<std::string>& set = {},
                  uint64_t seed = 3) const {
    return generate({.system = system, .set = set, .seed = seed, .out = base_ / system});
  }
  std::string data(const std::string& system, const Written& written) const {
    return (base_ / system / written.data).string();
  }
  // What the system writes after it has read its own files.
  Written read_back(const std::string& system, const std::vector<std::string>& set,
                    const std::string& path, uint64_t seed = 3) const {
    OptionValues option_values = find(system).option_values();
    for (const std::string& assignment : set) option_values.set(assignment);
    const auto task = find(system).make({std::move(option_values)});
    task->read({.path = path, .seed = seed});
    EXPECT_FALSE(task->read_in_words().empty()) << "what was read is said";
    return task->write();
  }
};

TEST_F(Generate, EverySystemReadsBackWhatItWrote) {
  const std::map<std::string, std::vector<std::vector<std::string>>> variants = {
      {"nadaraya-watson", {{}, {"sample=sine"}}},
      {"pooling", {{"bags=60"}, {"bags=60", "question=far"}}},
      {"deep-sets", {{}, {"task=solids", "points=20"}}},
      {"set-outlier", {{"sets=50"}, {"task=expansion", "sets=80"}}},
      {"mil", {{"bags=20", "validation_bags=4", "test_bags=6"}}},
      {"squeeze-excitation", {{"pictures=20"}}},
      {"mixture-of-experts", {{}, {"task=pictures", "pictures=20"}}},
      {"memory-network", {{"stories=40"}}},
      {"stacked-attention", {{"pictures=40"}}},
      {"show-attend-tell", {{"pictures=40"}}},
      {"ntm", {{"sequences=60"}, {"sequences=60", "task=repeat-copy"}}},
      {"dnc", {{"sequences=60"}, {"task=stories", "stories=40"}}},
      {"general", {{"memories=40"}}},
      {"scaled-dot-product", {{"sentences=60"}, {"sentences=60", "meaning=context"}}},
      {"bert",
       {{"documents=60"}, {"documents=60", "task=classify"}, {"documents=60", "task=span"}}},
      {"next-word", {{"sentences=60"}}},
      {"relative-positions",
       {{"rows=40"}, {"task=music", "canons=20"}, {"task=graphs", "rows=40"}}},
      {"sparse-patterns", {{"pictures=40", "test_pictures=10"}}},
      {"structured-attention", {{"pairs=40", "depth=3"}, {"task=spans"}}},
      {"bahdanau", {{}, {"generator=reordered"}, {"generator=copy-reverse"}}},
      {"document-attention", {{}}},
      {"hierarchical", {{}}}};
  const std::set<std::string> none = {"cost", "gradient-masking",
                                      "sparse-normalisers"};  // they have no items
  for (const System* system : all()) {
    const std::string& name = system->info.name;
    if (none.contains(name)) continue;
    const auto found = variants.find(name);
    for (const auto& set :
         found == variants.end() ? std::vector<std::vector<std::string>>(1) : found->second) {
      SCOPED_TRACE(name + (set.empty() ? "" : " " + set[0]));
      std::filesystem::remove_all(base_ / name);
      const Written first = written(name, set);
      ASSERT_FALSE(first.files.empty());
      Written second = read_back(name, set, data(name, first));
      for (const auto& [file, bytes] : first.files) {
        EXPECT_FALSE(bytes.empty()) << file;
        // Beside the data rather than in it: not read.
        if (file == "truth.jsonl") continue;
        // Clouds are standardised when read, which changes the last digits of standardised ones.
        if (file == "clouds.csv")
          EXPECT_EQ(std::ranges::count(second.files[file], '\n'), std::ranges::count(bytes, '\n'));
        else
          EXPECT_TRUE(second.files[file] == bytes) << file;
      }
    }
  }
}

TEST_F(Generate, TrainingOnTheFilesIsTrainingOnTheGenerator) {
  for (const std::string system : {"general", "scaled-dot-product", "multi-head"}) {
    SCOPED_TRACE(system);
    const Written files = written(system);
    TrainRequest request{.system = system, .epochs = 1, .data_seed = 3};
    const Json generated = train(system + "-generated", request);
    request.data = data(system, files);
    const Json read = train(system + "-read", request);
    EXPECT_EQ(generated.at("metrics"), read.at("metrics"));
    EXPECT_EQ(generated.at("attention"), read.at("attention")) << "the truth was not read";
    EXPECT_FALSE(read.at("attention").empty());
  }
}

TEST_F(Generate, TheSeedDecides) {
  const auto text = [&](uint64_t seed) {
    std::filesystem::remove_all(base_ / "fixed-attention");
    return written("fixed-attention", {}, seed).files;
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST_F(Generate, MistakesAreNamed) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(message([&] { written("cost"); }),
            "cost has no items to write; data: none: it measures this machine");
  EXPECT_NE(message([&] { written("genral"); }).find("general"), std::string::npos);
  written("general");
  EXPECT_NE(message([&] { written("general"); }).find("--overwrite"), std::string::npos);
}

TEST_F(Generate, FilesOfOnesOwnAreChecked) {
  const auto said = [&](const std::string& system, const std::string& file,
                        const std::string& text) -> std::string {
    std::ofstream(base_ / file) << text;
    try {
      read_back(system, {}, (base_ / file).string());
    } catch (const InvalidArgument& error) {
      return std::string(error.what()).substr((base_ / file).string().size());
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(said("scaled-dot-product", "s.tsv", "dog\tthe cat was what it saw\n"),
            ":1: 'dog' is meant, expected nobody or one of animal, dog, cat, horse, fox, child, "
            "tourist, goat that stands in the sentence");
  EXPECT_EQ(said("scaled-dot-product", "s.tsv", "the dog was tired\n"),
            ":1: expected whom<TAB>sentence, found 'the dog was tired'");
  EXPECT_EQ(said("general", "m.jsonl", "{\"keys\": [[1, 2]]}\n"),
            ":1: expected \"keys\" to be a list of rows of 8 numbers of float32, found '[1,2]'");
  EXPECT_EQ(said("word-sum", "t.jsonl", "{\"label\": 1, \"text\": \"a\", \"true_words\": [-1]}\n"),
            ":1: expected \"true_words\" to list places from 0, found '[-1]'");
}

TEST_F(Generate, AnEmptyBagHasARowOfItsOwn) {
  std::ofstream(base_ / "bags.csv") << "bag,label,f0,f1\nfull,1,0.5,-1\nempty,0,,\nfull,1,2,3\n";
  EXPECT_EQ(read_back("pooling", {}, (base_ / "bags.csv").string()).files.at("bags.csv"),
            "bag,label,f0,f1\nfull,1,0.5,-1\nfull,1,2,3\nempty,0,,\n");
}

}  // namespace
}  // namespace fovea::systems
