// Graph attention: the layer against a plain loop, odd graphs, files of the user's own, short runs.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>
#include <numeric>

#include "data/files/file.h"
#include "data/generated/graph.h"
#include "data/random.h"
#include "systems/gat/model.h"
#include "tests/systems/run/runs.h"

namespace fovea::systems::gat {
namespace {

using test::Runs;

data::CitationGraph small_graph(std::vector<std::pair<int32_t, int32_t>> edges) {
  data::CitationGraph graph;
  graph.nodes = 5;
  graph.features = 6;
  graph.classes = 3;
  graph.edges = std::move(edges);
  graph.words = {.row_offsets = {0, 2, 3, 3, 6, 8}, .columns = {0, 1, 2, 3, 4, 5, 1, 5}};
  graph.labels = {0, 1, 2, 0, 1};
  return graph;
}

GraphInput symmetric(const data::CitationGraph& graph) {
  return input_of(graph, data::symmetric_with_loops(graph.nodes, graph.edges));
}

std::shared_ptr<Model> model_for(const data::CitationGraph& graph, Shape shape = {}) {
  torch::manual_seed(3);
  shape.features = graph.features;
  shape.classes = graph.classes;
  auto model = std::make_shared<Model>(shape);
  model->eval();
  return model;
}

double gap(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

TEST(Layer, EqualsALoopOverNodesAndNeighbours) {
  const data::CitationGraph graph = small_graph({{0, 1}, {1, 3}, {3, 4}, {0, 4}});
  const data::Csr sees = data::symmetric_with_loops(graph.nodes, graph.edges);
  const GraphInput input = input_of(graph, sees);
  torch::manual_seed(1);
  for (const bool dynamic : {false, true}) {
    Layer layer(6, 2, 3, {.dynamic = dynamic});
    layer.eval();
    const Layer::Parts parts = layer.parts(input, {});
    const auto p = layer.named_parameters();
    const torch::Tensor out = layer.forward(input, {});
    for (int64_t i = 0; i < 5; ++i)
      for (int64_t head = 0; head < 2; ++head) {
        std::vector<torch::Tensor> scores, values;
        for (int64_t e = sees.row_offsets[static_cast<size_t>(i)];
             e < sees.row_offsets[static_cast<size_t>(i) + 1]; ++e) {
          const int64_t j = sees.columns[static_cast<size_t>(e)];
          const torch::Tensor wi = parts.value[i][head], wj = parts.value[j][head];
          scores.push_back(
              dynamic ? p["attention"][head].dot(torch::leaky_relu(parts.query[i][head] + wj, 0.2))
                      : torch::leaky_relu(p["attention"][head].select(1, 0).dot(wi) +
                                              p["attention"][head].select(1, 1).dot(wj),
                                          0.2));
          values.push_back(wj);
        }
        const torch::Tensor expected =
            torch::stack(scores).softmax(0).matmul(torch::stack(values)) + p["bias"][head];
        EXPECT_LT(gap(out[i][head], expected), 1e-6) << i << " " << head;
      }
  }
}

TEST(Layer, WordsAreTheProductWithRowNormalisedFeatures) {
  const data::CitationGraph graph = small_graph({});
  torch::Tensor dense = torch::zeros({5, 6});
  for (int64_t i = 0; i < 5; ++i)
    for (const auto words = data::row_of(graph.words, static_cast<size_t>(i));
         const int32_t word : words)
      dense[i][word] = 1.0 / static_cast<double>(words.size());
  const torch::Tensor weight = torch::randn({6, 8}).requires_grad_();
  const torch::Tensor ours = product(features_of(symmetric(graph), {}, 0), weight);
  EXPECT_LT(gap(ours, dense.matmul(weight)), 1e-6);
  EXPECT_EQ(ours[2].abs().sum().item<double>(), 0) << "a node without words";
  ours.square().sum().backward();
  const torch::Tensor got = weight.grad().clone();
  weight.mutable_grad().zero_();
  dense.matmul(weight).square().sum().backward();
  EXPECT_LT(gap(got, weight.grad()), 1e-5);
}

TEST(Layer, DroppedWordsKeepTheMean) {
  const data::CitationGraph graph = small_graph({});
  const GraphInput input = symmetric(graph);
  torch::manual_seed(5);
  const torch::Tensor weight = torch::randn({6, 8});
  torch::Tensor sum = torch::zeros({5, 8});
  for (int i = 0; i < 4000; ++i) sum += product(features_of(input, {}, 0.6), weight);
  EXPECT_LT(gap(sum / 4000, product(features_of(input, {}, 0), weight)), 0.1);
}

TEST(Graphs, AnIsolatedNodeSeesItselfWithWeightOne) {
  const data::CitationGraph graph = small_graph({{0, 1}});
  const GraphInput input = symmetric(graph);
  const auto model = model_for(graph);
  for (const Layer::Parts& parts : model->look(input)) {
    const torch::Tensor w = weights(parts.query, parts.key, parts.choices,
                                    {.rows = torch::tensor({int64_t{2}}), .top_k = 1})
                                .weights;
    EXPECT_TRUE(w.eq(1).all().item<bool>());
  }
  EXPECT_TRUE(model->forward(input).isfinite().all().item<bool>());
}

TEST(Graphs, DuplicateEdgesAndGivenSelfLoopsChangeNothing) {
  const auto plain = small_graph({{0, 1}, {1, 3}}),
             odd = small_graph({{0, 1}, {1, 0}, {0, 1}, {1, 3}, {4, 4}, {4, 4}, {0, 0}});
  const auto model = model_for(plain);
  EXPECT_TRUE(torch::equal(model->forward(symmetric(plain)), model->forward(symmetric(odd))));
}

// Names of nodes do not matter.
TEST(Graphs, RenumberingTheNodesRenumbersTheAnswers) {
  const data::GeneratedGraph made =
      data::generate_graph({.nodes = 80, .edges = 300, .features = 60, .classes = 3});
  const std::vector<std::pair<int32_t, int32_t>>& edges = made.graph.edges;
  std::vector<int32_t> to(80);
  std::iota(to.begin(), to.end(), 0);
  data::Random random(4);
  random.shuffle(to);
  data::CitationGraph moved = made.graph;
  std::vector<int32_t> from(80);
  for (size_t i = 0; i < 80; ++i) from[static_cast<size_t>(to[i])] = static_cast<int32_t>(i);
  moved.words = {.row_offsets = {0}, .columns = {}};
  for (const int32_t node : from) {
    const auto words = data::row_of(made.graph.words, static_cast<size_t>(node));
    moved.words.columns.insert(moved.words.columns.end(), words.begin(), words.end());
    moved.words.row_offsets.push_back(static_cast<int32_t>(moved.words.columns.size()));
  }
  for (size_t e = 0; e < edges.size(); ++e)
    moved.edges[e] = {to[static_cast<size_t>(edges[e].first)],
                      to[static_cast<size_t>(edges[e].second)]};
  const auto model = model_for(made.graph);
  const torch::Tensor before = model->forward(symmetric(made.graph)),
                      after = model->forward(symmetric(moved));
  EXPECT_LT(gap(before,
                after.index_select(0, torch::tensor(at::ArrayRef<int32_t>(to)).to(torch::kInt64))),
            1e-5);
}

// On a complete graph it is dense attention with its own score.
TEST(Graphs, ACompleteGraphIsDenseAttention) {
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (int32_t i = 0; i < 5; ++i)
    for (int32_t j = 0; j < i; ++j) edges.emplace_back(i, j);
  const data::CitationGraph graph = small_graph(edges);
  const auto model = model_for(graph);
  const Layer::Parts parts = model->look(symmetric(graph)).front();
  const auto heads_first = [](const torch::Tensor& x) {
    return x.transpose(0, 1).unsqueeze(0).contiguous();
  };
  const torch::Tensor dense = attend(heads_first(parts.query), heads_first(parts.key),
                                     heads_first(parts.value), {.score = RankOne{0.2}});
  EXPECT_LT(gap(heads_first(attend(parts.query, parts.key, parts.value, parts.choices)), dense),
            1e-5);
}

TEST(Graphs, WithinAHeadEveryNodeRanksItsNeighboursAlike) {
  const data::GeneratedGraph made =
      data::generate_graph({.nodes = 60, .edges = 400, .features = 60, .classes = 3});
  const auto model = model_for(made.graph);
  const Layer::Parts parts = model->look(symmetric(made.graph)).front();
  const torch::Tensor key = parts.key.select(1, 0).flatten();
  const SelectedWeights top = weights(parts.query, parts.key, parts.choices,
                                      {.heads = torch::tensor({int64_t{0}}), .top_k = 3});
  const torch::Tensor index = top.indices.reshape({60, 3});
  for (int64_t i = 0; i < 60; ++i)
    for (int64_t k = 0; k + 1 < 3; ++k) {
      const int64_t a = index[i][k].item<int64_t>(), b = index[i][k + 1].item<int64_t>();
      if (a >= 0 && b >= 0) {
        EXPECT_GE(key[a].item<float>(), key[b].item<float>());
      }
    }
}

class Gat : public Runs {
 protected:
  void expect_refused(const std::string& path, const std::string& words) const {
    try {
      train("refused", {.system = "gat", .data = path});
      ADD_FAILURE() << "expected: " << words;
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }
};

TEST_F(Gat, LearnsToLookPastSurveys) {
  const Json report = train("run", {.system = "gat", .set = {"epochs=120"}, .threads = 1});
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.8);
  EXPECT_GE(report.at("attention").at("hit_rate").get<double>(),
            0.8);  // half of the neighbours are surveys
  check_every_verb("run", "3\n17 21\n");
  // The node that is shown first has the choice that the page tells of.
  systems::Run run = systems::open(base_ / "run");
  const explain::Explanation first = systems::explain(run, nullptr).front();
  int surveys = 0, papers = 0;
  for (const explain::Link& link : first.maps.front().links) {
    if (link.query != 0 || link.key == 0) continue;
    const std::string& name = first.keys.at(static_cast<size_t>(link.key)).text;
    (name.starts_with("survey ") ? surveys : papers)++;
  }
  EXPECT_GT(surveys, 0);
  EXPECT_GT(papers, 0);
}

TEST_F(Gat, OtherScoresAndNormalisersAndDepthsLearn) {
  for (const std::vector<std::string>& set : {std::vector<std::string>{"version=gatv2"},
                                              {"normaliser=sparsemax"},
                                              {"layers=3", "heads=2", "output_heads=4"},
                                              {"layers=1"}}) {
    TrainRequest request{.system = "gat", .set = set, .threads = 1};
    request.set.insert(request.set.end(), {"epochs=60", "nodes=400"});
    EXPECT_GE(train("run-" + set.front(), request).at("metrics").at("accuracy").get<double>(), 0.4)
        << set.front();
  }
}

TEST_F(Gat, ReadsAGraphOfTheUsersOwn) {
  std::string nodes = "id,label,x,y\n", edges = "source,target\n";
  for (int i = 0; i < 40; ++i) {
    nodes += "n" + std::to_string(i) + "," +
             (i == 39 ? ""
              : i % 2 ? "odd"
                      : "even") +
             "," + std::to_string(1 + i % 2) + "," + std::to_string(2 - i % 2) + "\n";
    if (i >= 2) edges += "n" + std::to_string(i) + ",n" + std::to_string(i - 2) + "\n";
  }
  const Json report =
      train("run", {.system = "gat",
                    .data = graph_folder(nodes, edges),
                    .set = {"epochs=60", "dropout=0.1", "attention_dropout=0.1", "rate=0.05"},
                    .threads = 1});
  EXPECT_EQ(report.at("metrics").at("accuracy").get<double>(), 1.0);
  systems::Run run = systems::open(base_ / "run");
  std::istringstream lines("n39\n");
  std::ostringstream answers;
  predict(run, {lines, "input"}, answers);
  EXPECT_TRUE(answers.str().starts_with("n39\todd\t")) << answers.str();
  check_blank_line("run", "n39\n");
}

TEST_F(Gat, RefusesWhatItCannotRead) {
  const std::string nodes = "id,label,x\na,0,1\nb,1,2\n";
  expect_refused(graph_folder(nodes, "a,c\n"), "edges.csv:1: node 'c' is not in nodes.csv");
  expect_refused(graph_folder(nodes, "a,b,b\n"), "expected two nodes");
  expect_refused(graph_folder("id,label,x\na,0,1\na,1,2\n", "a,a\n"),
                 "nodes.csv:3: node 'a' is given twice");
  expect_refused(graph_folder("id,label,x\na,0,red\nb,1,1\nc,1,2\n", "a,b\n"), "column 'x'");
  expect_refused(graph_folder("id,label\na,0\nb,1\n", "a,b\n"), "at least one column of numbers");
  expect_refused((base_ / "nowhere").string(), "does not exist, expected a folder");
  std::filesystem::create_directories(base_ / "original");
  std::ofstream(base_ / "original" / "ind.cora.x") << "pickle";
  expect_refused((base_ / "original").string(), "Python pickles");
}

TEST_F(Gat, Cora) {
  const std::string planetoid = data_folder("planetoid");
  if (planetoid.empty()) GTEST_SKIP() << "planetoid is absent (FOVEA_DATA)";
  const Json report = train("cora", {.system = "gat",
                                     .data = planetoid + "/cora",
                                     .set = {"epochs=60", "rate=0.02"},
                                     .threads = 1});
  EXPECT_EQ(report.at("items").get<int64_t>(), 1000);
  EXPECT_GE(report.at("metrics").at("accuracy").get<double>(), 0.78);
}

}  // namespace
}  // namespace fovea::systems::gat
