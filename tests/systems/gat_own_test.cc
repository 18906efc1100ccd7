// Graphs of the user's own: their parts, the scale of their features, their edge lists, their
// pictures.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <regex>

#include "data/files/file.h"
#include "systems/pages/equations.h"
#include "systems/gat/model.h"
#include "systems/gat/parts.h"
#include "systems/system.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::gat {
namespace {

// Ten labelled nodes, of two classes in turns, and two without a label.
data::CitationGraph marked_graph(data::Splits splits) {
  data::CitationGraph graph;
  graph.nodes = 12;
  graph.classes = 2;
  for (int64_t i = 0; i < 12; ++i) graph.labels.push_back(i < 10 ? i % 2 : -1);
  graph.splits = std::move(splits);
  return graph;
}

TEST(Parts, NodesMarkedForTestAreNeverLearntFrom) {
  const data::Splits some = parts_of(marked_graph({.validation = {2}, .test = {0, 1, 9}}), {});
  EXPECT_EQ(some.test, (std::vector<int64_t>{0, 1, 9}));
  EXPECT_EQ(some.validation, std::vector<int64_t>{2});
  EXPECT_EQ(some.train, (std::vector<int64_t>{3, 4, 5, 6, 7, 8}));
}

TEST(Parts, WhatIsMissingIsDrawnFromTheNodesWithoutAMark) {
  EXPECT_EQ(parts_of(marked_graph({.train = {0, 1, 2, 3, 4, 5, 6}}), {}).test,
            (std::vector<int64_t>{7, 8, 9}));
  const data::Splits both = parts_of(marked_graph({.validation = {0, 1}}), {});
  EXPECT_EQ(both.validation, (std::vector<int64_t>{0, 1}));
  EXPECT_FALSE(both.test.empty());
  EXPECT_EQ(both.train.size() + both.test.size(), 8u);
  for (const auto* part : {&both.train, &both.test})
    for (const int64_t node : *part) EXPECT_TRUE(node >= 2 && node < 10) << node;
  const data::Splits drawn = parts_of(marked_graph({}), {});
  EXPECT_EQ(drawn.train.size() + drawn.validation.size() + drawn.test.size(), 10u);
}

TEST(Parts, NothingLeftToLearnFromIsRefused) {
  std::vector<int64_t> all(10);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_THROW(parts_of(marked_graph({.test = all}), {}), data::FileError);
  EXPECT_TRUE(parts_of(marked_graph({.train = all}), {}).test.empty());  // nothing to judge by
}

class OwnGraph : public test::Runs {
 protected:
  // One column parts the classes; every node knows one of its own class.
  std::string ages(const std::string& edges_first) const {
    std::string nodes = "id,label,age\n", edges = edges_first;
    for (int i = 0; i < 60; ++i) {
      nodes += "n" + std::to_string(i) + (i % 2 ? ",old," : ",young,") +
               std::to_string((i % 2 ? 60 : 20) + i % 7) + "\n";
      if (i >= 2 && i < 58) edges += "n" + std::to_string(i) + ",n" + std::to_string(i - 2) + "\n";
    }
    return graph_folder(nodes, edges);
  }
  Json train_ages(const std::string& name, const std::string& features) const {
    return train(name, {.system = "gat",
                        .data = ages("from,to\n"),
                        .set = {"epochs=60", "dropout=0.1", "attention_dropout=0.1", "rate=0.02",
                                "features=" + features},
                        .threads = 1});
  }
};

TEST_F(OwnGraph, OneColumnThatPartsTheClassesIsLearnt) {
  const Json report = train_ages("run", "auto");
  EXPECT_EQ(report.at("metrics").at("accuracy").get<double>(), 1.0);
  // The scaling is the run's: judged and asked again, it answers the same.
  const Json again = systems::evaluate(base_ / "run", "", "test");
  EXPECT_EQ(again.at("metrics").at("accuracy").get<double>(), 1.0);
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines("n0\nn1\n");
  std::ostringstream answers;
  systems::predict(run, {lines, "input"}, answers);
  EXPECT_TRUE(answers.str().starts_with("n0\tyoung\t")) << answers.str();
  EXPECT_NE(answers.str().find("\nn1\told\t"), std::string::npos) << answers.str();
  EXPECT_LT(train_ages("rows", "rows").at("metrics").at("accuracy").get<double>(), 0.9)
      << "a row of one number is always 1";
}

TEST_F(OwnGraph, WordsHaveNoColumnsToStandardise) {
  EXPECT_THROW(train("run", {.system = "gat", .set = {"nodes=50", "features=columns"}}),
               InvalidArgument);
}

TEST(Columns, AreStandardisedWithTheNodesGivenAndConstantsBecomeZero) {
  data::CitationGraph graph;
  graph.nodes = 3;
  graph.features = 2;
  graph.values = {1e6f + 1, 0.1f, 1e6f + 3, 0.1f, 1e6f + 7, 5};
  const torch::Tensor got =
      input_of(graph, data::symmetric_with_loops(3, {}), scaling_of(graph, {0, 1})).values;
  EXPECT_TRUE(torch::allclose(got, torch::tensor({{-1.0f, 0.0f}, {1.0f, 0.0f}, {5.0f, 0.0f}})))
      << got;
}

// Chromium draws a parenthesis as tall as what is under the sum, unless told.
TEST(Formula, ParenthesesKeepTheirSize) {
  const std::string equation = systems::mathml(systems::find("gat").info.equation);
  EXPECT_NE(equation.find("<mo stretchy=\"false\" lspace=\"0em\" rspace=\"0em\">(</mo>"),
            std::string::npos);
  for (const char* stretching : {"<mo>(</mo>", "<mo>)</mo>", "<mo>{</mo>", "<mo>}</mo>"})
    EXPECT_EQ(equation.find(stretching), std::string::npos) << stretching;
}

// Another graph than the one learned from, of which nobody knows the classes: asked, drawn, and not
// judged.
TEST_F(OwnGraph, AGraphWithoutLabelsIsAnsweredAndDrawn) {
  train_ages("run", "auto");
  const auto other = base_ / "other";
  const auto write = [&](const std::string& nodes) {
    std::filesystem::create_directories(other);
    std::ofstream(other / "nodes.csv") << nodes;
    std::ofstream(other / "edges.csv") << "a,b\nc,d\n";
    return other.string();
  };
  const std::string folder = write("id,age\na,21\nb,24\nc,63\nd,65\n");
  systems::Run run = systems::open(base_ / "run");
  const auto answers = [&](const std::string& asked) {
    std::istringstream lines(asked);
    std::ostringstream out;
    systems::predict(run, {lines, "input"}, out);
    return std::regex_replace(out.str(), std::regex("\t[0-9.]+\n"), "\n");
  };
  EXPECT_EQ(answers(folder + "\nd\n"), "a\tyoung\nb\tyoung\nc\told\nd\told\nd\told\n");
  EXPECT_EQ(answers("n0\nn1\n"), "n0\tyoung\nn1\told\n");  // the run's own graph again
  EXPECT_THROW(answers("a\n"), InvalidArgument);

  const auto drawn = [&](const std::string& asked) {
    std::istringstream lines(asked);
    Input input{lines, "input"};
    const auto pictures = systems::explain(run, &input);
    for (const explain::Explanation& picture : pictures) EXPECT_NO_THROW(explain::check(picture));
    return pictures;
  };
  ASSERT_FALSE(drawn(folder + "\n").empty());
  EXPECT_EQ(drawn(folder + "\n").at(0).queries.size(), 4u);
  const auto one = drawn(folder + "\nc\n");
  ASSERT_EQ(one.at(0).queries.size(), 1u);
  EXPECT_TRUE(one.at(0).queries[0].text.starts_with("c")) << one.at(0).queries[0].text;
  EXPECT_THROW(drawn("n0\n" + folder + "\n"), InvalidArgument);

  try {
    systems::evaluate(base_ / "run", folder, "test");
    ADD_FAILURE() << "a graph without labels was judged";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()), folder +
                                             ": no node has a label, expected some to evaluate; "
                                             "fovea predict works on such a graph");
  }
  // One class of the two is enough to be judged by, in whatever order; a new one is named.
  write("id,label,age\na,,21\nb,,24\nc,old,63\nd,old,65\n");
  EXPECT_EQ(systems::evaluate(base_ / "run", folder, "test").at("metrics").at("accuracy"), 1.0);
  write("id,label,age\na,,21\nb,ancient,24\nc,old,63\nd,old,65\n");
  try {
    systems::evaluate(base_ / "run", folder, "test");
    ADD_FAILURE() << "a class that training never saw was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              folder + ": class 'ancient', expected one of training's: old, young");
  }
}

// Columns of features are found by their names: in another order they mean the same, under another
// name nobody knows what they are.
TEST_F(OwnGraph, FeaturesOfAnotherGraphAreFoundByTheirNames) {
  const auto folder = base_ / "columns";
  const auto write = [&](const std::string& header, bool swapped) {
    std::filesystem::create_directories(folder);
    std::ofstream nodes(folder / "nodes.csv"), edges(folder / "edges.csv");
    nodes << header << "\n";
    for (int i = 0; i < 40; ++i) {
      const std::string age = std::to_string(i % 2 ? 60 + i : 20 + i), size = std::to_string(i % 7);
      nodes << "n" << i << (i % 2 ? ",old," : ",young,")
            << (swapped ? size + "," + age : age + "," + size) << "\n";
      edges << "n" << i << ",n" << (i + 2) % 40 << "\n";
    }
    return folder.string();
  };
  train("run", {.system = "gat",
                .data = write("id,label,age,size", false),
                .set = {"epochs=60", "heads=2", "width=4"}});
  EXPECT_EQ(systems::evaluate(base_ / "run", write("id,label,size,age", true), "test")
                .at("metrics")
                .at("accuracy"),
            1.0);
  try {
    systems::evaluate(base_ / "run", write("id,label,height,size", false), "test");
    ADD_FAILURE() << "a feature that training never saw was taken";
  } catch (const InvalidArgument& error) {
    EXPECT_EQ(std::string(error.what()),
              (folder / "nodes.csv").string() + ":1: no column 'age', a feature in training");
  }
}

// The class belongs to the node that is chosen, and what is counted is said.
TEST_F(OwnGraph, PicturesSayOfEachNodeWhatWasPredicted) {
  train_ages("run", "auto");
  systems::Run run = systems::open(base_ / "run");
  const auto drawn = [&](const std::string& nodes) {
    std::istringstream lines(nodes);
    Input input{lines, "input"};
    return systems::explain(run, &input);
  };
  for (const explain::Explanation& picture : drawn("n4 n5 n6 n7 n8 n9 n10 n11 n59\n")) {
    EXPECT_EQ(picture.outcome, "");
    EXPECT_TRUE(picture.queries.at(0).text.starts_with("n4 · young (right, p = "));
    EXPECT_TRUE(picture.queries.at(1).text.starts_with("n5 · old (right, p = "));
    EXPECT_EQ(picture.keys.at(0).text, "n4 · young");
    EXPECT_TRUE(std::any_of(picture.notes.begin(), picture.notes.end(), [](const auto& note) {
      return note.find("covers 8 of the 9 nodes") != std::string::npos;
    }));
  }
  for (const explain::Explanation& picture : drawn("n59\n")) {  // knows nobody
    EXPECT_TRUE(picture.notes.empty() || picture.notes[0].find("covers") == std::string::npos);
    EXPECT_TRUE(picture.outcome.starts_with("n59 · old (right, p = ")) << picture.outcome;
  }
}

}  // namespace
}  // namespace fovea::systems::gat
