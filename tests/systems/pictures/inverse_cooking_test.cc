// Inverse cooking: fusions, the list has no order, words and steps, titles, and every verb.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>

#include "data/formats/vocabulary.h"
#include "data/pictures/image.h"
#include "systems/generate.h"
#include "systems/inverse_cooking/codec.h"
#include "systems/inverse_cooking/dishes.h"
#include "systems/inverse_cooking/writer.h"
#include "systems/system.h"
#include "tests/nn/differences.h"
#include "tests/systems/run/runs.h"
#include "train/task.h"

namespace fovea::systems::inverse_cooking {
namespace {

WriterShape small(const std::string& fusion) {
  return {.words = 9,
          .ingredients = 6,
          .fusion = kFusions.of(fusion),
          .width = 8,
          .heads = 2,
          .layers = 2,
          .longest = 12};
}

struct Set {
  explicit Set(const std::string& fusion, torch::ScalarType type = torch::kFloat32)
      : writer(small(fusion)) {
    writer.to(type);
    writer.eval();
    picture.keys = torch::randn({2, 5, 8}, type);
  }
  torch::Tensor logits(const std::vector<LabelSet>& sets) {
    return writer.next_logits(torch::tensor({{2, 4, 5}, {2, 6, 7}}, torch::kInt64),
                              {picture, writer.list_of(sets, torch::kCPU)});
  }
  Writer writer;
  Memory picture;
};

TEST(InverseCookingWriter, TheOrderOfIngredientsAndTheirPaddingDoNotMatter) {
  for (const std::string& fusion : kFusions.names()) {
    torch::manual_seed(1);
    Set set(fusion);
    const torch::NoGradGuard guard;
    const torch::Tensor one = set.logits({{0, 3, 5}, {2}}), other = set.logits({{5, 0, 3}, {2}});
    EXPECT_TRUE(torch::allclose(one, other, 1e-5, 1e-5)) << fusion;
    // Item 1 has one ingredient; beside a longer list it is padded.
    EXPECT_TRUE(torch::allclose(set.logits({{0}, {2}})[1], one[1], 1e-5, 1e-5)) << fusion;
    EXPECT_FALSE(torch::allclose(set.logits({{0}, {2}})[0], one[0], 1e-3, 1e-3)) << fusion;
  }
}

TEST(InverseCookingWriter, WithoutIngredientsThePictureAloneIsLookedAt) {
  for (const std::string& fusion : kFusions.names()) {
    torch::manual_seed(2);
    Set set(fusion);
    const torch::NoGradGuard guard;
    const torch::Tensor bare = set.logits({{}, {}});
    EXPECT_TRUE(bare.isfinite().all().item<bool>()) << fusion;
    {
      // No ingredient's vector can change that.
      auto table = set.writer.named_parameters()["ingredients.weight"];
      table.mul_(-3);
    }
    EXPECT_TRUE(torch::allclose(set.logits({{}, {}}), bare, 1e-5, 1e-5)) << fusion;
  }
}

TEST(InverseCookingWriter, ConcatenatedIsOneSoftmaxOverRegionsAndIngredients) {
  torch::manual_seed(3);
  for (const std::string& fusion : kFusions.names()) {
    Set set(fusion);
    const torch::NoGradGuard guard;
    const Kitchen kitchen{{set.picture.keys.narrow(0, 0, 1)},
                          set.writer.list_of({{1, 4}}, torch::kCPU)};
    const auto weights = set.writer.weights_of(kitchen, {4, 5, 6});
    ASSERT_EQ(weights.size(), 2u);
    EXPECT_EQ(weights[0].sizes(), (std::vector<int64_t>{2, 3, 7})) << fusion;
    EXPECT_TRUE(torch::allclose(weights[1].sum(2), torch::ones({2, 3}), 1e-5, 1e-5)) << fusion;
    const torch::Tensor on_list = weights[1].slice(2, 5).sum(2);
    EXPECT_EQ(torch::allclose(on_list, torch::full({2, 3}, 0.5), 1e-5, 1e-5),
              fusion != "concatenated")
        << fusion;
  }
}

// What write() keeps between words changes nothing: each word is the likeliest after those before it.
TEST(InverseCookingWriter, AWordAtATimeIsWhatTheWholeWouldSay) {
  for (const std::string& fusion : kFusions.names()) {
    for (const bool titles : {false, true}) {
      torch::manual_seed(7);
      Set set(fusion);
      const torch::NoGradGuard guard;
      if (titles) set.picture.lengths = torch::tensor({5, 2}, torch::kInt32);
      const Kitchen kitchen{set.picture, set.writer.list_of({{0, 3, 5}, {}}, torch::kCPU)};
      const std::vector<Ids> written = set.writer.write(kitchen);
      for (size_t i = 0; i < written.size(); ++i) {
        Ids words = {data::kBos};
        words.insert(words.end(), written[i].begin(), written[i].end());
        words.resize(12, data::kPad);
        torch::Tensor logits = set.writer
                                   .next_logits(torch::tensor(words, torch::kInt64).expand({2, -1}),
                                                kitchen)[static_cast<int64_t>(i)]
                                   .clone();
        logits.slice(1, 0, data::kEos).fill_(-1e9);
        for (size_t at = 1; at < words.size(); ++at)  // no word follows itself
          logits[static_cast<int64_t>(at)][words[at]] = -1e9;
        EXPECT_EQ(std::adjacent_find(written[i].begin(), written[i].end()), written[i].end());
        for (size_t at = 0; at < std::min<size_t>(written[i].size() + 1, 12); ++at)
          EXPECT_EQ(logits[static_cast<int64_t>(at)].argmax().item<int64_t>(),
                    at < written[i].size() ? written[i][at] : int64_t{data::kEos})
              << fusion << ", item " << i << ", word " << at;
      }
    }
  }
}

TEST(InverseCookingWriter, WordsDoNotSeeWhatFollows) {
  torch::manual_seed(4);
  Set set("concatenated");
  const torch::NoGradGuard guard;
  const Kitchen kitchen{{set.picture.keys.narrow(0, 0, 1)}, set.writer.list_of({{1}}, torch::kCPU)};
  const torch::Tensor one = set.writer.next_logits(torch::tensor({{2, 4, 5}}), kitchen),
                      other = set.writer.next_logits(torch::tensor({{2, 4, 8}}), kitchen);
  EXPECT_TRUE(torch::allclose(one.narrow(1, 0, 2), other.narrow(1, 0, 2), 1e-5, 1e-5));
  EXPECT_FALSE(torch::allclose(one.narrow(1, 2, 1), other.narrow(1, 2, 1), 1e-3, 1e-3));
}

TEST(InverseCookingWriter, GradientsAgreeWithFiniteDifferences) {
  for (const std::string& fusion : kFusions.names()) {
    torch::manual_seed(5);
    Set set(fusion, torch::kFloat64);
    const auto value = [&] {
      int64_t count = 0;
      return set.writer.negative_log({set.picture, set.writer.list_of({{0, 3}, {}}, torch::kCPU)},
                                     {{4, 5}, {6, 7, 8}}, count, 0);
    };
    SCOPED_TRACE(fusion);
    nn::test::expect_gradients_of_differences(value, set.writer, {.each = 3, .padding = 8});
  }
}

TEST(InverseCookingWriter, PerplexityCountsTheEndAndNoPadding) {
  torch::manual_seed(6);
  Set set("concatenated");
  const torch::NoGradGuard guard;
  int64_t both = 0, one = 0, other = 0;
  const auto kitchen = [&](int64_t item) {
    return Kitchen{{set.picture.keys.narrow(0, item, 1)}, set.writer.list_of({{1}}, torch::kCPU)};
  };
  const double together =
      set.writer
          .negative_log({set.picture, set.writer.list_of({{1}, {1}}, torch::kCPU)},
                        {{4}, {5, 6, 7}}, both, 0)
          .item<double>();
  const double apart = set.writer.negative_log(kitchen(0), {{4}}, one, 0).item<double>() +
                       set.writer.negative_log(kitchen(1), {{5, 6, 7}}, other, 0).item<double>();
  EXPECT_EQ(both, 6);
  EXPECT_EQ(one + other, 6);
  EXPECT_NEAR(together, apart, 1e-4);
}

TEST(InverseCookingCodec, TitleAndStepsArePartedByAMark) {
  const data::Recipe recipe{
      .title = "Pea soup", .ingredients = {"peas"}, .steps = {"Boil the peas", "serve"}};
  const Codec codec({recipe}, 1);
  const Told told = codec.told(codec.ids(recipe));
  EXPECT_EQ(told.title, "pea soup");
  EXPECT_EQ(told.steps, (std::vector<std::string>{"boil the peas", "serve"}));
  const Codec again(codec.text(), "vocabulary");
  EXPECT_EQ(again.ids(recipe), codec.ids(recipe));
  EXPECT_TRUE(codec.told({}).steps.empty());
}

TEST(InverseCookingCodec, LongerNamesOfIngredientsWin) {
  EXPECT_EQ(named_in({"add", "green", "peas", "and", "peas"}, {"peas", "green peas", "salt"}),
            (Ids{-1, -1, 1, -1, 0}));
  EXPECT_EQ(named_in({}, {"salt"}), Ids{});
}

TEST(InverseCookingTitles, TheNearestTitleIsFoundByItsRareWords) {
  EXPECT_EQ(
      title_words({.kind = "apple_pie", .title = "Grandma's Apple Pie_15", .ingredients = {}}),
      (std::vector<std::string>{"apple", "pie", "grandma", "s", "<apple_pie>"}));
  const std::vector<data::Recipe> known = {
      {.kind = "pie", .title = "apple pie", .ingredients = {"apple"}},
      {.kind = "pie", .title = "cherry pie", .ingredients = {"cherry"}},
      {.kind = "soup", .title = "pea soup", .ingredients = {"peas"}}};
  const auto found =
      of_nearest_title({{.kind = "pie", .title = "the cherry pie", .ingredients = {}},
                        {.title = "soup", .ingredients = {}}},
                       known);
  EXPECT_EQ(found[0], std::vector<std::string>{"cherry"});
  EXPECT_EQ(found[1], std::vector<std::string>{"peas"});
}

class InverseCookingRuns : public test::Runs {
 protected:
  static TrainRequest quick() {
    return {.system = "inverse-cooking",
            .set = {"plates=48", "epochs=1", "width=16", "filters=4", "heads=2", "layers=1",
                    "side=32", "grid=4", "ingredient_layers=1", "longest=20"}};
  }
};

TEST_F(InverseCookingRuns, EveryVerbWorksOnFilesOfItsOwn) {
  generate({.system = "inverse-cooking", .set = {"plates=48", "side=32"}, .out = base_ / "data"});
  TrainRequest request = quick();
  request.data = (base_ / "data").string();
  const Json report = train("run", request);
  for (const char* metric : {"f1", "iou", "perplexity", "perplexity_predicted", "named_in_set",
                             "named_in_set_predicted", "told"})
    EXPECT_TRUE(report.at("metrics").contains(metric)) << metric;
  const std::string line = request.data + "/pictures.idx#3\n";
  check_every_verb("run", line);
  check_blank_line("run", line);
}

TEST_F(InverseCookingRuns, EveryFusionTrainsAndDraws) {
  for (const std::string& fusion : kFusions.names()) {
    TrainRequest request = quick();
    request.set.push_back("fusion=" + fusion);
    train(fusion, request);
    systems::Run run = systems::open(base_ / fusion);
    EXPECT_GE(systems::explain(run, nullptr).size(), 3u) << fusion;
  }
}

TEST_F(InverseCookingRuns, TitlesAreComparedWithTheNearestTitle) {
  std::string lines;
  for (int i = 0; i < 30; ++i)
    for (const char* kind : {"pie\tapple pie\tx\tapple|flour", "soup\tpea soup\tx\tpeas|salt"})
      lines += std::string(i < 20 ? "train" : i < 25 ? "val" : "test") + "\t" + kind + "\n";
  std::ofstream(base_ / "recipes.tsv") << lines;
  TrainRequest request{.system = "inverse-cooking",
                       .data = (base_ / "recipes.tsv").string(),
                       .set = {"epochs=1", "width=16", "heads=2", "predictor=ff-bce"}};
  const Json report = train("run", request);
  EXPECT_DOUBLE_EQ(report.at("metrics").at("retrieval_f1").get<double>(), 1);
  EXPECT_FALSE(report.at("metrics").contains("perplexity")) << "no steps, nothing to write";
  check_every_verb("run", "pie\tapple pie\n");
  check_blank_line("run", "apple pie\n");
}

TEST_F(InverseCookingRuns, RecipesWithAndWithoutPicturesAreNotMixed) {
  std::ofstream(base_ / "recipes.jsonl") << "{\"picture\": \"a.png\", \"ingredients\": "
                                            "[\"x\"]}\n{\"title\": \"t\", \"ingredients\": []}\n";
  const auto refusal = [&] {
    return said([&] { train("run", {.system = "inverse-cooking", .data = base_.string()}); });
  };
  const std::string expected = "some recipes have a picture and some have none";
  EXPECT_NE(refusal().find(expected), std::string::npos);
  std::ofstream(base_ / "recipes.jsonl")
      << "{\"title\": \"t\", \"ingredients\": []}\n{\"picture\": \"a.png\", \"ingredients\": "
         "[\"x\"]}\n";
  EXPECT_NE(refusal().find(expected), std::string::npos);
}

TEST_F(InverseCookingRuns, APictureThatCannotBeReadIsLeftOut) {
  std::string lines;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "p" + std::to_string(i) + ".png";
    const std::vector<uint8_t> pixels(48, static_cast<uint8_t>(8 * i));
    std::ofstream(base_ / name, std::ios::binary)
        << (i == 7 ? "\x89PNG damaged" : data::png_bytes({4, 4, 3, pixels}));
    lines += "{\"picture\": \"" + name + "\", \"ingredients\": [\"peas\"]}\n";
  }
  std::ofstream(base_ / "recipes.jsonl") << lines;
  TrainRequest request = quick();
  request.data = base_.string();
  train("run", request);
  const systems::Run run = systems::open(base_ / "run");
  const Dishes read = read_dishes({.path = request.data}, run.run_options->options);
  EXPECT_TRUE(read.note.starts_with("1 picture cannot be read, left out: ")) << read.note;
  EXPECT_NE(read.note.find("p7.png"), std::string::npos) << read.note;
  for (const auto split : {data::Split::kTrain, data::Split::kValidation, data::Split::kTest})
    for (const int64_t item : read.recipes.splits.of(split)) EXPECT_NE(item, 7);
}

}  // namespace
}  // namespace fovea::systems::inverse_cooking
