// Set outlier and set expansion: formulas, odd sets, short runs.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "data/formats/item_sets.h"
#include "systems/set_outlier/model.h"
#include "systems/set_outlier/things.h"
#include "tests/systems/sets.h"

namespace fovea::systems {
namespace {

using test::Sets;

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}
data::Packed sets_of(const torch::Tensor& values, std::vector<int64_t> offsets) {
  return {values, torch::tensor(at::ArrayRef<int64_t>(offsets)).to(torch::kInt32)};
}

TEST(SetOutlier, TheHingeIsFlatWhereSatisfiedAndTheTargetIsNoRival) {
  const torch::Tensor scores = torch::tensor({{3.0, 2.0, 1.0, 9.0}}).requires_grad_();
  const torch::Tensor excluded =
      torch::tensor({{false, false, false, true}});  // a member: no candidate
  const torch::Tensor loss =
      set_outlier::margin_loss(scores, torch::tensor({int64_t{0}}), excluded, 3, torch::ones({1}));
  EXPECT_EQ(loss.item<double>(), 0);  // rivals at 2 (exactly one below) and 1
  loss.backward();
  EXPECT_EQ(scores.grad().abs().sum().item<double>(), 0);
  const torch::Tensor close = set_outlier::margin_loss(scores.detach(), torch::tensor({int64_t{1}}),
                                                       excluded, 1, torch::ones({1}));
  EXPECT_NEAR(close.item<double>(), 2, 1e-6);  // 3 − 2 + 1
}

TEST(SetOutlier, TheMarginMayAskLessOfThingsThatKeepCompany) {
  // 0 and 1 stand together in two of three sets; 2 never stands with 0; 3 is in no set.
  const torch::Tensor margin = set_outlier::company_margin({{0, 1}, {0, 1, 3}, {1, 2}}, 5);
  EXPECT_NEAR(margin[0][1].item<double>(), 1 - 2.0 / 3, 1e-6);
  EXPECT_EQ(margin[0][2].item<double>(), 1);
  EXPECT_EQ(margin[0][4].item<double>(), 1);
  EXPECT_EQ(margin.diagonal().abs().sum().item<double>(), 0);  // Δ(x, x) = 0
  EXPECT_TRUE(torch::equal(margin, margin.t()));
  // With Δ = 1/3 a rival 0.5 below the target is far enough; with Δ = 1 it is not.
  const torch::Tensor scores = torch::tensor({{3.0f, 2.5f, 0.0f, 0.0f, 0.0f}}),
                      target = torch::tensor({int64_t{0}}),
                      none = torch::zeros({1, 5}, torch::kBool);
  EXPECT_EQ(set_outlier::margin_loss(scores, target, none, 1, margin.index_select(0, target))
                .item<double>(),
            0);
  EXPECT_NEAR(set_outlier::margin_loss(scores, target, none, 1, torch::ones({1})).item<double>(),
              0.5, 1e-6);
}

TEST(SetOutlier, GainsAreDifferencesOfTheSetFunction) {
  torch::manual_seed(5);
  set_outlier::ExpansionModel model(6, 4);
  const torch::Tensor set = torch::tensor({int64_t{0}, int64_t{3}});
  const torch::Tensor gains = model.gains(set, torch::tensor({0, 2}, torch::kInt32))[0];
  const double before = model.value(set, torch::tensor({0, 2}, torch::kInt32))[0].item<double>();
  for (int64_t x = 0; x < 6; ++x) {
    const torch::Tensor with = torch::cat({set, torch::tensor({x})});
    EXPECT_NEAR(model.value(with, torch::tensor({0, 3}, torch::kInt32))[0].item<double>() - before,
                gains[x].item<double>(), 1e-5);
  }
}

TEST(SetOutlier, SharesMoveWithTheMembersAndSumToOne) {
  torch::manual_seed(6);
  set_outlier::OutlierModel model({.filters = 2, .width = 4});
  const torch::Tensor x = torch::randn({5, 784}), order = torch::tensor({4, 0, 3, 1, 2});
  const auto shares = [&](const torch::Tensor& members) {
    const data::Packed set = sets_of(members, {0, 5});
    return set_outlier::OutlierModel::weights_of(model.forward(set), set.offsets);
  };
  EXPECT_LT(gap(shares(x).index_select(0, order), shares(x.index_select(0, order))), 1e-5);
  EXPECT_NEAR(shares(x).sum().item<double>(), 1, 1e-5);
}

TEST(ItemSets, ReadsTheLastFieldAndCountsAThingOnce) {
  EXPECT_EQ(data::things_of_line("7\tgreek\tsalt|oil|salt||"),
            (std::vector<std::string>{"oil", "salt"}));
  EXPECT_EQ(data::things_of_line("olive oil | salt |  |salt"),
            (std::vector<std::string>{"olive oil", "salt"}));
  EXPECT_TRUE(data::things_of_line("").empty());
}

// Clouds that are all the same: whatever the answer, it is right for one label only.
TEST_F(Sets, TheOddDigitIsFound) {
  const Json report = train("run", {.system = "set-outlier",
                                    .set = {"epochs=3", "sets=1000", "filters=6", "rate=0.002"},
                                    .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.5);  // chance: one in eight
  check_every_verb("run", pictures({4, 4, 4, 7, 4}) + "\n");
  check_blank_line("run", pictures({4, 4, 4, 7, 4}) + "\n");
  systems::Run run = systems::open(base_ / "run");
  const explain::Explanation picture = systems::explain(run, nullptr).at(0);
  for (size_t set = 0; set < picture.queries.size(); ++set) {
    const auto row =
        picture.maps[0].dense.begin() + static_cast<std::ptrdiff_t>(set * picture.keys.size());
    const auto best =
        std::max_element(row, row + static_cast<std::ptrdiff_t>(picture.keys.size())) - row;
    const bool found = best == picture.truth->sure.at(set).key;
    EXPECT_NE(picture.queries[set].text.find(found ? ": found" : ": missed"), std::string::npos);
  }
  // The sets of the input, as predict answers for them.
  const std::string folder = pictures({4, 4, 4, 7, 4});
  std::istringstream predicted(folder + "\n"), drawn(folder + "\n");
  std::ostringstream answer;
  systems::predict(run, {predicted, "input"}, answer);
  Input input{drawn, "input"};
  const explain::Explanation own = systems::explain(run, &input).at(0);
  EXPECT_NO_THROW(explain::check(own));
  EXPECT_FALSE(own.truth);
  ASSERT_EQ(own.keys.size(), 5u);
  const auto& shares = own.maps[0].dense;
  const auto odd =
      static_cast<size_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
  EXPECT_NE(answer.str().find("/" + own.keys[odd].text + "\t"), std::string::npos) << answer.str();
  EXPECT_TRUE(own.queries[0].text.starts_with(folder + ": " + own.keys[odd].text))
      << own.queries[0].text;
}

TEST_F(Sets, MissingThingsAreRanked) {
  for (const std::string loss : {"margin", "softmax"}) {
    const Json report =
        train(loss, {.system = "set-outlier",
                     .set = {"task=expansion", "epochs=6", "rate=0.01", "loss=" + loss},
                     .threads = 1});
    const Json& metrics = report.at("metrics");
    EXPECT_GE(metrics.at("recall_10").get<double>(),
              5 * metrics.at("popularity_recall_10").get<double>() * 0.5)
        << loss;
    EXPECT_GE(metrics.at("recall_10").get<double>(), 0.6) << loss;
  }
  check_every_verb("margin", "t1w0|t1w3|t1w5\n");
  check_blank_line("margin", "t1w0|t1w3|t1w5\n");
  systems::Run run = systems::open(base_ / "margin");
  std::istringstream lines("t1w0|t1w3|t1w5\n");
  std::ostringstream answers;
  systems::predict(run, {lines, "input"}, answers);
  const auto pictures = systems::explain(run, nullptr);
  for (const explain::Explanation& picture : pictures) {
    const std::string& text = picture.queries[0].text;
    const size_t at = text.find(" — hidden: ");
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_NE(text.find(", ranked ", at), std::string::npos) << text;
    // Among the ten that are drawn where its rank says so, at that place.
    const int64_t rank = std::stoll(text.substr(text.find(", ranked ", at) + 9));
    ASSERT_EQ(picture.truth->sure.size(), rank <= 10 ? 1u : 0u) << text;
    if (rank <= 10) {
      EXPECT_EQ(picture.truth->sure[0].key, rank - 1) << text;
    }
  }
  for (const char* member : {"t1w0\t", "t1w3\t", "t1w5\t"})
    EXPECT_EQ(answers.str().find(member), std::string::npos) << "a member is no candidate";
}

// One's own sets are drawn as the test's are, as many as there are lines.
// What each picture adds is a sum only where ρ is linear.
// A handful of sets leaves none to test on: no figures then, rather than those of nothing.
TEST_F(Sets, NothingToJudgeByIsSaid) {
  std::ofstream(base_ / "tiny.txt") << "salt | oil\nsalt|basil \n oil|basil|salt\n";
  const Json report = train("run", {.system = "set-outlier",
                                    .data = (base_ / "tiny.txt").string(),
                                    .set = {"task=expansion", "epochs=1"},
                                    .threads = 1});
  EXPECT_EQ(report.at("items").get<int64_t>(), 0) << report.dump();
  EXPECT_TRUE(report.at("metrics").empty()) << report.dump();
  EXPECT_NE(report.at("notes").dump().find("no items to evaluate"), std::string::npos);
}

TEST_F(Sets, UnknownThingsAreNamed) {
  EXPECT_EQ(data::things_of_line("7\t salt | olive oil|salt || "),
            (std::vector<std::string>{"olive oil", "salt"}));
  EXPECT_EQ(set_outlier::shown_set("salt | olive oil|basil"), "salt, olive oil, basil");
  for (const auto& [rank, text] : std::map<int64_t, std::string>{
           {1, "1st"}, {2, "2nd"}, {3, "3rd"}, {11, "11th"}, {22, "22nd"}, {113, "113th"}})
    EXPECT_EQ(set_outlier::ordinal(rank), text);
  std::ofstream(base_ / "train.txt") << "salt | oil\nsalt|basil \n oil|basil|salt\n";
  EXPECT_EQ(data::read_item_sets((base_ / "train.txt").string()).names,
            (std::vector<std::string>{"salt", "basil", "oil"}));
  train("run", {.system = "set-outlier",
                .data = (base_ / "train.txt").string(),
                .set = {"task=expansion", "epochs=1"},
                .threads = 1});
  const auto answer = [&](const std::string& line) {
    systems::Run run = systems::open(base_ / "run");
    std::istringstream lines(line + "\n");
    std::ostringstream answers;
    testing::internal::CaptureStderr();
    systems::predict(run, {lines, "input"}, answers);
    return std::pair(answers.str(), testing::internal::GetCapturedStderr());
  };
  const auto [known, silence] = answer("oil|salt");
  EXPECT_EQ(silence, "");
  EXPECT_EQ(answer(" oil | salt "), std::pair(known, silence));
  const auto [same, warning] = answer("oil|salt|gold");
  EXPECT_EQ(same, known);
  EXPECT_EQ(warning, "fovea: input:1: unknown to this run and left out: 'gold'\n");

  std::ofstream(base_ / "other.txt") << "salt|oil|gold\nsilver|gold\n";
  const Json report = systems::evaluate(base_ / "run", (base_ / "other.txt").string(), "test");
  EXPECT_EQ(report.at("items").get<int64_t>(), 1);
  EXPECT_NE(report.at("notes").dump().find("3 of 5 things are unknown to this run"),
            std::string::npos)
      << report.dump();
}

TEST_F(Sets, AFolderWithoutPicturesAndAWrongPathAreRefused) {
  const auto refusal = [](const auto& act) {
    try {
      act();
    } catch (const InvalidArgument& error) {
      return std::string(error.what());
    }
    return std::string("nothing was refused");
  };
  const std::string folder = (base_ / "others").string(), file = folder + "/notes.txt";
  std::filesystem::create_directories(folder);
  std::ofstream(file) << "no picture\n";
  train("run", {.system = "set-outlier",
                .set = {"epochs=1", "sets=10", "filters=1", "width=2"},
                .threads = 1});
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines(folder + "\n");
  std::ostringstream answers;
  EXPECT_EQ(refusal([&] {
              systems::predict(run, {lines, "input"}, answers);
            }),
            "input:1: " + folder + ": no PNG or JPEG in it");

  for (const auto& either :
       {std::pair("deep-sets", "task=solids"), std::pair("set-outlier", "task=expansion")}) {
    const std::string system = either.first, task = either.second, missing = folder + "/missing";
    EXPECT_EQ(refusal([&] { train("none", {.system = system, .data = missing}); }),
              missing + ": no such folder, expected MNIST's four IDX files in it");
    const std::string wrong = refusal([&] { train("none", {.system = system, .data = file}); });
    EXPECT_TRUE(wrong.starts_with(file + ": a file, expected a folder")) << wrong;
    EXPECT_NE(wrong.find(task), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace fovea::systems
