// The systems that teach the idea: pooling, the general form, gradients, six steps, cost.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "data/random.h"
#include "systems/cost/cost.h"
#include "systems/cost/memory.h"
#include "systems/gradient_masking/model.h"
#include "systems/pooling/pooling.h"
#include "systems/scaled_dot_product/six_steps.h"
#include "systems/scaled_dot_product/view.h"
#include "tests/systems/run/runs.h"
#include "train/usage_error.h"

namespace fovea::systems {
namespace {

using test::Runs;
using torch::indexing::Slice;

// ---- pooling ------------------------------------------------------------------------------------

TEST(Pooling, EqualsPlainLoopsAndEmptyBagsGiveZero) {
  torch::manual_seed(1);
  const torch::Tensor values = torch::randn({7, 3}, torch::kFloat64);
  const torch::Tensor offsets = torch::tensor({0, 3, 3, 7}, torch::kInt32);
  for (const std::string how : {"sum", "mean", "max"}) {
    const torch::Tensor x = values.clone().requires_grad_();
    const torch::Tensor out = pooling::pool(how, x, offsets);
    for (const auto& [bag, from, to] : {std::tuple(0, 0, 3), std::tuple(2, 3, 7)}) {
      const torch::Tensor part = values.index({Slice(from, to)});
      const torch::Tensor expected = how == "sum"    ? part.sum(0)
                                     : how == "mean" ? part.mean(0)
                                                     : std::get<0>(part.max(0));
      EXPECT_LT((out[bag] - expected).abs().max().item<double>(), 1e-12) << how;
    }
    EXPECT_EQ(out[1].abs().sum().item<double>(), 0) << how;
    out.sum().backward();
    EXPECT_TRUE(x.grad().isfinite().all().item<bool>()) << how;
  }
}

TEST(Pooling, MaxTiesSendTheGradientToTheLowestIndex) {
  const torch::Tensor x = torch::tensor({{2.0}, {2.0}, {1.0}}, torch::kFloat64).requires_grad_();
  pooling::pool("max", x, torch::tensor({0, 3}, torch::kInt32)).sum().backward();
  EXPECT_TRUE(torch::equal(x.grad().flatten(), torch::tensor({1.0, 0.0, 0.0}, torch::kFloat64)));
}

class Teaching : public Runs {};

TEST_F(Teaching, AQueryMayDependOnItsBag) {
  const torch::Tensor values = torch::randn({5, 3}, torch::kFloat64),
                      offsets = torch::tensor({0, 2, 5}, torch::kInt32),
                      queries = torch::randn({2, 3}, torch::kFloat64);
  const torch::Tensor own = pooling::pool("attention", values, offsets, queries);
  for (int64_t bag = 0; bag < 2; ++bag)
    EXPECT_LT((own[bag] - pooling::pool("attention", values, offsets, queries[bag])[bag])
                  .abs()
                  .max()
                  .item<double>(),
              1e-12);
  const Json report =
      train("context", {.system = "pooling", .set = {"pool=context", "question=far", "epochs=10"}});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.9);
  check_every_verb("context", "bag,f0,f1\na,1,2\na,0,1\n");
}

TEST_F(Teaching, PoolingAnswersTheQuestionItFits) {
  struct Row {
    const char *question, *fits, *fails;
  };
  for (const Row& row :
       {Row{"many", "sum", "mean"}, Row{"right", "mean", "max"}, Row{"far", "max", ""}}) {
    const std::string question = std::string("question=") + row.question;
    const Json good =
        train(std::string("good-") + row.question,
              {.system = "pooling", .set = {question, std::string("pool=") + row.fits}});
    EXPECT_GE(good.at("metrics").at("accuracy").get<double>(), 0.97) << row.question;
    if (*row.fails) {
      const Json bad =
          train(std::string("bad-") + row.question,
                {.system = "pooling", .set = {question, std::string("pool=") + row.fails}});
      EXPECT_LT(bad.at("metrics").at("accuracy").get<double>(),
                good.at("metrics").at("accuracy").get<double>() - 0.02)
          << row.question;
    }
  }
  check_every_verb("good-many", "bag,f0,f1\na,1,2\na,0,1\n");
}

TEST_F(Teaching, PoolingOnBagsOfOnesOwn) {
  data::Random random(8);
  std::ostringstream table;
  table << "bag,label,f0,f1\n";
  for (int bag = 0; bag < 200; ++bag) {
    const int label = bag % 2;
    // Far from mean 0 and deviation 1: a model that meets them unscaled is lost.
    for (int row = 0; row < 5; ++row)
      table << bag << "," << label << "," << 5000 + 300 * (label + 0.3 * random.normal()) << ","
            << 7 + 0.01 * random.normal() << "\n";
  }
  const std::string path = (base_ / "bags.csv").string();
  std::ofstream(path) << table.str();
  const Json report = train("own", {.system = "pooling", .data = path, .set = {"pool=mean"}});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.95);

  systems::Run run = systems::open(base_ / "own");
  std::istringstream lines(table.str()), again(table.str());
  std::ostringstream answers;
  systems::predict(run, {lines, "bags.csv"}, answers);
  std::istringstream read(answers.str());
  std::string name, p;
  int label = 0, right = 0;
  while (read >> name >> label >> p) right += label == std::stoi(name) % 2;
  EXPECT_GE(right, 190);  // predict scales as training did
  Input input{again, "bags.csv"};
  const auto pictures = systems::explain(run, &input);
  ASSERT_GE(pictures.size(), 2u);
  EXPECT_NE(pictures[1].title.find(": 1"), std::string::npos) << pictures[1].title;
  // Even weights beside attention, whose sum is 1.
  ASSERT_EQ(pictures[1].maps.size(), 3u);
  float sum = 0;
  for (const float weight : pictures[1].maps[2].dense) sum += weight;
  EXPECT_NEAR(sum, 1, 1e-5);

  // With one class there is no AUC, and the report says so.
  EXPECT_TRUE(report.at("metrics").contains("auc"));
  EXPECT_FALSE(report.contains("notes"));
  const std::string ones = (base_ / "ones.csv").string();
  std::ofstream(ones) << "bag,label,f0,f1\na,1,5300,7\nb,1,5310,7\n";
  const Json one_class = systems::evaluate(base_ / "own", ones, "test");
  EXPECT_FALSE(one_class.at("metrics").contains("auc"));
  EXPECT_EQ(one_class.at("notes"),
            Json({"auc: undefined, all items are of one class",
                  "f1: the mean over 1 of 2 classes; the others have no item and no answer"}));

  const std::string narrow = (base_ / "narrow.csv").string();
  std::ofstream(narrow) << "bag,label,f0\na,1,1\n";
  try {
    systems::evaluate(base_ / "own", narrow, "test");
    ADD_FAILURE() << "one feature was enough";
  } catch (const InvalidArgument& error) {
    EXPECT_NE(std::string(error.what()).find("narrow.csv:1: no column 'f1', a feature in training"),
              std::string::npos)
        << error.what();
  }
}

// A system that cannot draw what it is given says so, and draws nothing else in its place.
TEST_F(Teaching, AnInputThatCannotBeDrawnIsRefused) {
  for (const std::string system : {"general", "gradient-masking", "cost"}) {
    TrainRequest request{.system = system};
    if (system == "general") request.set = {"epochs=1"};
    if (system == "cost") request.set = {"smallest=64", "largest=128", "d=16", "seconds=0.01"};
    train(system, request);
    systems::Run run = systems::open(base_ / system);
    std::istringstream lines("1\n");
    Input input{lines, "input"};
    EXPECT_THROW(systems::explain(run, &input), UsageError) << system;
  }
}

// ---- general ------------------------------------------------------------------------------------

TEST_F(Teaching, AnyScoreAndNormaliserLooksUpTheRightPair) {
  for (const std::string score : {"dot", "additive", "bilinear", "cosine", "kernel"}) {
    const Json report = train("score-" + score, {.system = "general", .set = {"score=" + score}});
    EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.95) << score;
  }
  for (const std::string normaliser : {"sparsemax", "entmax", "top_k"}) {
    const Json report = train("normaliser-" + normaliser,
                              {.system = "general", .set = {"normaliser=" + normaliser}});
    EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.95) << normaliser;
  }
  check_every_verb("score-dot", "1 2 3 4 5 6 7 8\n");
}

// ---- gradient-masking ---------------------------------------------------------------------------

TEST(GradientMasking, FormulasAreExact) {
  torch::manual_seed(2);
  const torch::Tensor x = torch::randn({2, 4}, torch::kFloat64),
                      g = torch::randn({4}, torch::kFloat64);
  for (const double gap : {-3.0, 0.0, 0.7, 9.0}) {
    const torch::Tensor e = torch::tensor({gap, 0.0}, torch::kFloat64);
    const auto got = gradient_masking::gradients(x, e, g);
    EXPECT_LT((got.x - got.x_formula).abs().max().item<double>(), 1e-14);
    EXPECT_LT((got.e - got.e_formula).abs().max().item<double>(), 1e-14);
    const double a = 1 / (1 + std::exp(-gap));
    EXPECT_NEAR(std::abs(got.e[0].item<double>()),
                a * (1 - a) * std::abs((x[0] - x[1]).dot(g).item<double>()), 1e-14);
  }
}

TEST(GradientMasking, ASaturatedSoftmaxFreezesBothScoresAndTheUnusedInput) {
  const torch::Tensor x = torch::randn({2, 4}, torch::kFloat64),
                      g = torch::ones({4}, torch::kFloat64);
  const auto got = gradient_masking::gradients(x, torch::tensor({800.0, 0.0}, torch::kFloat64), g);
  EXPECT_EQ(got.x[1].abs().sum().item<double>(), 0);
  EXPECT_EQ(got.e.abs().sum().item<double>(), 0);
  EXPECT_LT((got.x[0] - g).abs().max().item<double>(), 1e-15);
}

TEST_F(Teaching, WhatIsNeverAttendedToNeverMoves) {
  for (const std::string optimiser : {"sgd", "adam"}) {
    const Json metrics =
        train(optimiser, {.system = "gradient-masking", .set = {"optimiser=" + optimiser}})
            .at("metrics");
    EXPECT_EQ(metrics.at("moved_unattended").get<double>(), 0) << optimiser;
    EXPECT_GT(metrics.at("moved_attended").get<double>(), 0.1) << optimiser;
    EXPECT_LT(metrics.at("identity_error").get<double>(), 1e-12);
  }
  // Weight decay moves even what is masked, as the page explains.
  const Json decayed =
      train("decay", {.system = "gradient-masking", .set = {"weight_decay=0.01"}}).at("metrics");
  EXPECT_GT(decayed.at("moved_unattended").get<double>(), 0);
  check_every_verb("sgd", "0\n3\n");
}

// ---- scaled-dot-product -------------------------------------------------------------------------

TEST(ScaledDotProduct, TheWorkedExample) {
  // d_k = 64, q·k = 112 and 96.
  for (const auto type : {torch::kFloat32, torch::kFloat64}) {
    const torch::Tensor query = torch::ones({64}, type);
    const torch::Tensor keys =
        torch::stack({torch::full({64}, 112.0 / 64, type), torch::full({64}, 96.0 / 64, type)});
    const auto steps = scaled_dot_product::six_steps(query, keys, torch::eye(2, type));
    EXPECT_NEAR(steps.scores[0].item<double>(), 112, 1e-4);
    EXPECT_NEAR(steps.scores[1].item<double>(), 96, 1e-4);
    EXPECT_NEAR(steps.scaled[0].item<double>(), 14, 1e-5);
    EXPECT_NEAR(steps.scaled[1].item<double>(), 12, 1e-5);
    EXPECT_NEAR(steps.weights[0].item<double>(), 0.8808, 5e-5);
    EXPECT_NEAR(steps.weights[1].item<double>(), 0.1192, 5e-5);
    EXPECT_NEAR(steps.sum[0].item<double>(), 0.8808, 5e-5);
  }
  // Without the scale nothing is left for the second: 1 - 1.1e-7.
  const torch::Tensor query = torch::ones({64}, torch::kFloat64);
  const torch::Tensor keys = torch::stack({torch::full({64}, 112.0 / 64, torch::kFloat64),
                                           torch::full({64}, 96.0 / 64, torch::kFloat64)});
  const auto unscaled =
      scaled_dot_product::six_steps(query * 8, keys, torch::eye(2, torch::kFloat64));
  EXPECT_NEAR(1 - unscaled.weights[0].item<double>(), 1.125e-7, 1e-9);
}

TEST(SixSteps, TheNumbersOfTheLectureStandOnThePage) {
  const explain::Explanation page = scaled_dot_product::thinking_machines();
  explain::check(page);
  EXPECT_EQ(page.tables.at(0).rows.at(0),
            (std::vector<std::string>{"Thinking", "q₁, k₁, v₁", "112", "14", "0.88", "0.88 v₁"}));
  EXPECT_EQ(page.tables.at(0).rows.at(1),
            (std::vector<std::string>{"Machines", "k₂, v₂", "96", "12", "0.12", "0.12 v₂"}));
  EXPECT_EQ(page.tables.at(0).rows.at(2).back(), "z₁ = 0.88 v₁ + 0.12 v₂");
}

TEST_F(Teaching, ItMeansTheAnimal) {
  const Json report = train("it", {.system = "scaled-dot-product"});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.99);
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.99);
  check_every_verb("it", "the fox did not enter the yard because it was too late\n");
  systems::Run run = open(base_ / "it");
  std::istringstream marked("\xEF\xBB\xBFthe fox was late because it was tired\n");
  Input input{marked, "input"};
  EXPECT_EQ(explain(run, &input)[0].queries[0].text, "the") << "without the byte order mark";
}

// Six steps for each of its words would be a page of gigabytes.
TEST_F(Teaching, AnEndlessSentenceIsCutShort) {
  train("long", {.system = "scaled-dot-product", .set = {"sentences=50"}, .epochs = 1});
  const auto explained = [&](int words) {
    std::string sentence = "the fox was late because it was tired";
    for (int i = 8; i < words; ++i) sentence += " today";
    systems::Run run = open(base_ / "long");
    std::istringstream line(sentence + "\n");
    Input input{line, "input"};
    return explain(run, &input).at(0);
  };
  EXPECT_EQ(explained(100).tables.size(), 100u);
  const explain::Explanation cut = explained(300);
  ASSERT_EQ(cut.tables.size(), 1u);
  EXPECT_EQ(cut.tables[0].title, "Six steps for “it”");
  EXPECT_EQ(cut.notes, std::vector<std::string>{
                           "A sentence of 300 words: the six steps are those of “it” alone."});
  EXPECT_NE(said([&] { explained(5000); }).find("input:1: 5000 tokens, more than 4096"),
            std::string::npos);
}

TEST_F(Teaching, ItMeansWhatTheContextFits) {
  const TrainRequest request{
      .system = "scaled-dot-product", .set = {"meaning=context"}, .epochs = 30};
  const Json report = train("context", request);
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.98);
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(), 0.98);
  systems::Run run = open(base_ / "context");
  const std::vector<explain::Explanation> pages = explain(run, nullptr);
  ASSERT_GE(pages.size(), 3u);
  EXPECT_EQ(pages[0].queries.back().text, "tired");
  EXPECT_EQ(pages[0].outcome.find("right: animal"), 0u) << pages[0].outcome;
  EXPECT_EQ(pages[1].queries.back().text, "wide");
  EXPECT_EQ(pages[1].outcome.find("right: street"), 0u) << pages[1].outcome;
  check_every_verb("context", "the tired fox did not enter the yard because it was too muddy\n");
}

TEST_F(Teaching, WithoutPositionsTheContextMisleads) {
  // "The tired animal did not cross the street because it was too wide": the words alone, without
  // their order, do not tell which of "tired" and "wide" is said of it.
  const Json report = train("bag", {.system = "scaled-dot-product",
                                    .set = {"meaning=context", "positions=false"},
                                    .epochs = 30});
  EXPECT_LT(report.at("metrics").at("accuracy").get<double>(), 0.9);
}

// ---- cost ---------------------------------------------------------------------------------------

TEST(Cost, FormulasAtAThousand) {
  EXPECT_EQ(cost::attention_operations(1000, 1000), 4e9);
  EXPECT_EQ(cost::lstm_operations(1000, 1000), 16e9);
  EXPECT_EQ(cost::convolution_operations(1000, 1000, 3), 6e9);
  EXPECT_EQ(cost::attention_operations(1000, 1000) + cost::projection_operations(1000, 1000), 12e9);
  EXPECT_EQ(cost::attention_operations(cost::predicted_crossing(64), 64),
            cost::lstm_operations(cost::predicted_crossing(64), 64));
}

TEST_F(Teaching, CostIsMeasured) {
  const Json report = train(
      "cost", {.system = "cost", .set = {"smallest=64", "largest=1024", "d=16", "seconds=0.02"}});
  EXPECT_EQ(report.at("metrics").at("predicted_crossing").get<double>(), 64);
  EXPECT_GT(report.at("metrics").at("attention_gflops").get<double>(), 0);
  check_every_verb("cost", "1000 1000\n");
}

TEST_F(Teaching, CostIsMeasuredOverWidthsToo) {
  const Json report = train(
      "cost",
      {.system = "cost", .set = {"sweep=d", "n=128", "smallest=8", "largest=64", "seconds=0.01"}});
  EXPECT_EQ(report.at("metrics").at("predicted_crossing").get<double>(), 32) << "n = 4d";
  systems::Run run = open(base_ / "cost");
  const explain::Explanation page = explain(run, nullptr).at(0);
  explain::check(page);
  EXPECT_EQ(page.plots.at(0).curves.at(0).x, (std::vector<double>{8, 16, 32, 64}));
}

TEST_F(Teaching, CostHasAPictureForEachWidth) {
  const Json report = train(
      "cost", {.system = "cost", .set = {"d=8,512,1024", "smallest=8", "largest=16", "seconds=0"}});
  EXPECT_EQ(report.at("metrics").at("predicted_crossing_d1024").get<double>(), 4096);
  systems::Run run = open(base_ / "cost");
  const std::vector<explain::Explanation> pages = explain(run, nullptr);
  ASSERT_GE(pages.size(), 3u);
  EXPECT_EQ(pages[1].title, "Time of one layer, width 512");
  EXPECT_TRUE(pages[1].plots.at(0).markers.empty()) << "n = 2048 was not measured";
  for (const explain::Explanation& page : pages) explain::check(page);
}

TEST_F(Teaching, CostNamesAWidthThatIsNone) {
  EXPECT_EQ(said([&] { train("cost", {.system = "cost", .set = {"d=64,wide"}}); }),
            "--set d: expected whole numbers from 1 to 4096 with commas between, found 'wide'");
}

TEST(Cost, MemoryIsThatOfTheCall) {
  const double held = cost::peak_bytes([] { torch::ones({16 << 20}); });  // 64 MiB
  if (std::isnan(held)) GTEST_SKIP() << "the operating system does not tell";
  EXPECT_GT(held, 60 << 20);
  EXPECT_LT(held, 80 << 20);
}

}  // namespace
}  // namespace fovea::systems
