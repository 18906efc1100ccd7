// A whole run on small rows of our own, and what is printed of it.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "bench/report/report.h"

namespace fovea::bench {
namespace {

Row small_row(const std::string& name, double peer_value) {
  return {.name = name,
          .work = {.pairs = 1e4, .flops = 2e4},
          .make =
              [=] {
                const at::Tensor x = at::ones({100, 100});
                return Instance{
                    .ours = {"fovea", [x] { return Tensors{x + 1}; }},
                    .peers = {{"peer", [x, peer_value] { return Tensors{x + peer_value}; }}},
                    .yardsticks = {{"twice", [x] { return Tensors{x + 1 + 1}; }, 2e4}}};
              },
          .figures = {times_peer_at_least(1e-9), times_yardstick_at_most(1e-9, "twice"),
                      times_peer_of_row_at_least(1, "absent")}};
}

Options quick() {
  Options options;
  options.threads = 1;
  options.memory = false;
  options.protocol = {.minimum_rounds = 2, .maximum_rounds = 2, .seconds = 0};
  return options;
}

TEST(Run, JudgesEveryFigureAndSaysWhichItCouldNot) {
  const Report report = run({small_row("a/b", 1)}, quick(), [](const std::string&) {});
  ASSERT_EQ(report.rows.size(), 1u);
  EXPECT_EQ(report.met(), 1u);
  EXPECT_EQ(report.missed(), 1u);
  EXPECT_FALSE(report.rows[0].figures[2].verdict);
  EXPECT_EQ(report.rows[0].measured.best_peer, "peer");
  EXPECT_EQ(report.rows[0].measured.rounds, 2u);
  EXPECT_GT(report.rows[0].measured.percent_roof, 0);
  const std::string text = table(report);
  EXPECT_NE(text.find("\u2713 x_peer"), std::string::npos) << text;
  EXPECT_NE(text.find("\u2717 time <="), std::string::npos) << text;
  EXPECT_NE(text.find("1 of 2 figures"), std::string::npos) << text;
  const auto json = to_json(report);
  EXPECT_EQ(json["rows"][0]["name"], "a/b");
  EXPECT_EQ(json["rows"][0]["figures"][1]["met"], false);
  EXPECT_TRUE(json["rows"][0]["figures"][2]["met"].is_null());
  EXPECT_EQ(json["missed"], 1);
}

TEST(Run, RefusesToTimeAWrongResult) {
  try {
    run({small_row("wrong", 2)}, quick(), [](const std::string&) {});
    FAIL() << "a peer that disagrees";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("wrong: differs from peer"), std::string::npos)
        << error.what();
  }
}

TEST(Page, DrawsSeriesAndEscapesNames) {
  Report report;
  for (double n : {10.0, 100.0, 1000.0}) {
    RowReport row;
    row.measured.name = "a<b";
    row.measured.rounds = 1;
    row.measured.milliseconds = n * n;
    row.measured.memory = 1e6 * n;
    row.measured.best_peer = "peer";
    row.measured.times_peer = n;
    row.series = Series{"grows", n, 2, 1};
    report.rows.push_back(row);
  }
  const std::string html = to_html(report);
  EXPECT_EQ(html.find("a<b"), std::string::npos);
  EXPECT_NE(html.find("a&lt;b"), std::string::npos);
  EXPECT_NE(html.find("grows: time"), std::string::npos);
  EXPECT_NE(html.find("grows: peak extra memory"), std::string::npos);
  EXPECT_EQ(html.find("http"), std::string::npos);  // nothing is fetched
}

TEST(Rows, HaveNamesOfTheirOwnAndFiguresThatReferToRows) {
  std::set<std::string> names;
  for (const Row& row : all_rows())
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
  EXPECT_EQ(select(all_rows(), "dot/2048/dense/forward").size(), 1u);
  EXPECT_EQ(select(all_rows(), "dot/128/*").size(), 4u);
  EXPECT_TRUE(select(all_rows(), "no such row").empty());
}

}  // namespace
}  // namespace fovea::bench
