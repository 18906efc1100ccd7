// Graphs: the vectors of offsets become vectors of edge labels. The kind of the node that an edge of
// the label in question leads to can be told only by who sees the labels.
#include <fmt/format.h>

#include <algorithm>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/formats/vocabulary.h"
#include "data/packed.h"
#include "systems/relative_positions/generated.h"
#include "systems/relative_positions/model.h"
#include "systems/relative_positions/tasks.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::relative_positions {
namespace {

using data::LabelledGraph;
using Names = std::vector<std::string>;

void add_name(Names& names, const std::string& name) {
  const auto place = std::lower_bound(names.begin(), names.end(), name);
  if (place == names.end() || *place != name) names.insert(place, name);
}

class Graphs : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    graphs_.clear();
    if (source.path.empty()) {
      data::Random random(data::mix(source.seed, 0x2903));
      const int64_t rows = run_options_.options.integer("rows");
      const data::PartSizes sizes{.train = rows, .validation = rows / 8, .test = rows / 4};
      for (int64_t i = 0; i < sizes.all(); ++i) graphs_.push_back(draw_graph(random));
      splits_ = data::in_order(sizes);
    } else {
      graphs_ = data::read_labelled_graphs(source.path);
      data::SplitRequest request = split_request(source);
      request.test = 0.2;
      for (const LabelledGraph& graph : graphs_)
        request.keys.push_back(data::item_key(data::labelled_graph_text(graph)));
      splits_ = data::split(static_cast<int64_t>(graphs_.size()), request);
    }
    if (!kinds_.empty()) label_items(source.path);
  }
  std::string read_in_words() const override {
    return fmt::format("{} graphs: {} for training, {} for validation, {} for test", graphs_.size(),
                       splits_.train.size(), splits_.validation.size(), splits_.test.size());
  }
  void prepare() override {
    kinds_.clear();
    labels_of_edges_.clear();
    for (const LabelledGraph& graph : graphs_) {
      add_name(kinds_, graph.answer);
      for (const std::string& kind : graph.kinds) add_name(kinds_, kind);
      for (const data::LabelledEdge& edge : graph.edges) add_name(labels_of_edges_, edge.label);
      add_name(labels_of_edges_, graph.question);
    }
    label_items("");
  }
  Assets assets() const override {
    return {.facts = {{"kinds", kinds_}, {"labels", labels_of_edges_}}, .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    kinds_ = facts.texts("kinds");
    labels_of_edges_ = facts.texts("labels");
    if (kinds_.empty()) facts.refuse("kinds", "at least one name");
    if (labels_of_edges_.empty()) facts.refuse("labels", "at least one name");
    for (const auto& [names, field] :
         {std::pair(&kinds_, "kinds"), std::pair(&labels_of_edges_, "labels")})
      if (!std::is_sorted(names->begin(), names->end(), std::less_equal<>()))
        facts.refuse(field, "different names in order");
  }
  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& o = run_options_.options;
    return model_ = std::make_shared<GraphModel>(
               GraphConfig{.colours = static_cast<int64_t>(kinds_.size()),
                           .questions = static_cast<int64_t>(labels_of_edges_.size()),
                           .labels = static_cast<int64_t>(labels_of_edges_.size()),
                           .width = o.integer("width"),
                           .heads = o.integer("heads"),
                           .labelled = o.flag("edge_labels")});
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    return model_->forward(batch_of(items));
  }
  // The largest weight of any head: heads may share the work.
  std::vector<int> hits(std::span<const int64_t> items) override {
    const GraphBatch batch = batch_of(items);
    const SelectedWeights top = model_->weights(batch, 1);  // [1, heads, graphs, 1]
    const torch::Tensor weight = top.weights.reshape({-1, batch.asked.size(0)}),
                        edge = top.indices.reshape({-1, batch.asked.size(0)});
    const torch::Tensor found = edge.gather(0, weight.argmax(0, true)).flatten().cpu();
    std::vector<int> out;
    int64_t before = 0;  // edges of the graphs before
    for (size_t i = 0; i < items.size(); ++i) {
      const LabelledGraph& graph = at(items[i]);
      const std::vector<int64_t> order = by_row(graph);
      const auto place = std::find(order.begin(), order.end(), deciding_edge(graph));
      out.push_back(place == order.end() ? -1
                                         : found[static_cast<int64_t>(i)].item<int64_t>() ==
                                               before + (place - order.begin()));
      before += static_cast<int64_t>(order.size());
    }
    return out;
  }

  void predict(Input input, std::ostream& out) override {
    answer_lines(input, out, [&](size_t number, std::string_view line) -> Answered {
      const torch::NoGradGuard no_grad;
      const LabelledGraph graph = known(line, input.name, number);
      const torch::Tensor p = model_->forward(batch_of({&graph})).softmax(1)[0].cpu();
      return {fmt::format("{}\t{:.4f}\n", kinds_[static_cast<size_t>(p.argmax().item<int64_t>())],
                          p.max().item<double>()),
              [this, p] { return class_fields(kinds_, to_floats(p)); }};
    });
  }

  std::vector<explain::Explanation> explain(Input* input) override {
    constexpr size_t kShown = 3;
    std::vector<LabelledGraph> shown;
    if (input != nullptr)
      data::each_line(input->stream, input->name, [&](size_t number, std::string_view line) {
        shown.push_back(known(line, input->name, number));
      });
    else
      for (size_t i = 0; i < std::min(kShown, splits_.test.size()); ++i)
        shown.push_back(at(splits_.test[i]));
    std::vector<explain::Explanation> out;
    for (const LabelledGraph& graph : shown) out.push_back(picture(graph));
    return out;
  }

  Written write() const override {
    Written out{.data = "graphs.tsv", .truth = "truth.jsonl, the edge that decides, from 0"};
    for (const LabelledGraph& graph : graphs_) {
      out.files["graphs.tsv"] += data::labelled_graph_text(graph) + "\n";
      out.files["truth.jsonl"] += Json{{"edge", deciding_edge(graph)}}.dump() + "\n";
    }
    return out;
  }

 private:
  const LabelledGraph& at(int64_t item) const { return graphs_[static_cast<size_t>(item)]; }

  static int64_t number_in(const Names& names, const std::string& name, const char* what) {
    const auto place = std::lower_bound(names.begin(), names.end(), name);
    if (place == names.end() || *place != name)
      throw InvalidArgument(
          fmt::format("{} {} was not in the training data", what, data::shown(name)));
    return place - names.begin();
  }
  void label_items(const std::string& path) {
    labels_.clear();
    for (size_t i = 0; i < graphs_.size(); ++i) {
      try {
        labels_.push_back(number_in(kinds_, graphs_[i].answer, "answer"));
        batch_of({&graphs_[i]});
      } catch (const InvalidArgument& error) {
        throw data::FileError(path, 0, fmt::format("graph {}: {}", i + 1, error.what()));
      }
    }
  }
  LabelledGraph known(std::string_view line, const std::string& name, size_t number) const {
    if (data::trimmed(line).empty())
      throw data::FileError(name, number, "a blank line, expected a graph");
    LabelledGraph graph = data::parse_labelled_graph(line, name, number);
    batch_of({&graph});  // every name is known
    return graph;
  }

  // Edges by the node they start from, as rows of a graph want them.
  static std::vector<int64_t> by_row(const LabelledGraph& graph) {
    std::vector<int64_t> out(graph.edges.size());
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
    std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) {
      return graph.edges[static_cast<size_t>(a)].from < graph.edges[static_cast<size_t>(b)].from;
    });
    return out;
  }

  GraphBatch batch_of(std::span<const int64_t> items) const {
    std::vector<const LabelledGraph*> graphs;
    for (const int64_t item : items) graphs.push_back(&at(item));
    return batch_of(graphs);
  }
  GraphBatch batch_of(const std::vector<const LabelledGraph*>& graphs) const {
    std::vector<int64_t> kinds, questions, labels, asked;
    std::vector<int32_t> offsets = {0}, columns;
    for (const LabelledGraph* graph : graphs) {
      const auto first = static_cast<int64_t>(kinds.size());
      for (const std::string& kind : graph->kinds) {
        kinds.push_back(number_in(kinds_, kind, "kind"));
        questions.push_back(0);
      }
      asked.push_back(first + graph->asked);
      questions[static_cast<size_t>(asked.back())] =
          1 + number_in(labels_of_edges_, graph->question, "question");
      std::vector<int32_t> degree(graph->kinds.size());
      for (const int64_t edge : by_row(*graph)) {
        const data::LabelledEdge& one = graph->edges[static_cast<size_t>(edge)];
        ++degree[static_cast<size_t>(one.from)];
        columns.push_back(static_cast<int32_t>(first + one.to));
        labels.push_back(number_in(labels_of_edges_, one.label, "label"));
      }
      for (const int32_t edges : degree) offsets.push_back(offsets.back() + edges);
    }
    return GraphBatch{torch::tensor(kinds, torch::kLong),
                      torch::tensor(questions, torch::kLong),
                      {torch::tensor(offsets, torch::kInt), torch::tensor(columns, torch::kInt)},
                      torch::tensor(labels, torch::kLong),
                      torch::tensor(asked, torch::kLong)}
        .to(run_options_.device);
  }

  // The edges of the asked node, and how much each counts.
  explain::Explanation picture(const LabelledGraph& graph) {
    const torch::NoGradGuard no_grad;
    const GraphBatch batch = batch_of({&graph});
    const std::vector<int64_t> order = by_row(graph);
    std::vector<int64_t> own;  // places in the order
    for (size_t i = 0; i < order.size(); ++i)
      if (graph.edges[static_cast<size_t>(order[i])].from == graph.asked)
        own.push_back(static_cast<int64_t>(i));
    explain::Explanation out;
    out.system = "relative-positions";
    out.title = fmt::format("Node {}: what is {} of it?", graph.asked, graph.question);
    out.view = explain::View::kBipartite;
    out.score = "scaled dot + vectors of edge labels";
    out.normaliser = "softmax";
    out.structure = "labelled edges";
    out.scale = fmt::format(
        "1/√{}", run_options_.options.integer("width") / run_options_.options.integer("heads"));
    out.query_label = "asked";
    out.key_label = "edge";
    out.queries.push_back({.text = fmt::format("{} ({})", graph.asked,
                                               graph.kinds[static_cast<size_t>(graph.asked)])});
    for (const int64_t place : own) {
      const data::LabelledEdge& edge =
          graph.edges[static_cast<size_t>(order[static_cast<size_t>(place)])];
      if (edge.label == graph.question) {
        if (!out.truth) out.truth = explain::Truth{"the edge that decides", {}, {}, {}};
        out.truth->sure.push_back({0, static_cast<int32_t>(out.keys.size()), 1.0f});
      }
      out.keys.push_back({.text = fmt::format("{} → {} ({})", edge.label, edge.to,
                                              graph.kinds[static_cast<size_t>(edge.to)])});
    }
    const torch::Tensor p = model_->forward(batch).softmax(1)[0].cpu();
    const std::string& best = kinds_[static_cast<size_t>(p.argmax().item<int64_t>())];
    out.outcome = fmt::format("{}, p = {:.2f}", best, p.max().item<double>());
    if (!graph.answer.empty())
      out.outcome +=
          graph.answer == best ? ", which is right" : fmt::format("; right: {}", graph.answer);
    out.heads = {"head", {}};
    const int64_t heads = run_options_.options.integer("heads");
    const SelectedWeights found =
        model_->weights(batch, std::max<int64_t>(1, static_cast<int64_t>(own.size())));
    const torch::Tensor weight = found.weights.reshape({heads, -1}).cpu(),
                        edge = found.indices.reshape({heads, -1}).cpu();
    for (int64_t h = 0; h < heads; ++h) {
      out.heads.names.push_back(std::to_string(h + 1));
      explain::Map& map = out.maps.emplace_back();
      map.head = static_cast<int>(h);
      map.dense.assign(own.size(), 0);
      for (int64_t k = 0; k < edge.size(1); ++k) {
        const auto place = std::find(own.begin(), own.end(), edge[h][k].item<int64_t>());
        if (place != own.end())
          map.dense[static_cast<size_t>(place - own.begin())] = weight[h][k].item<float>();
      }
    }
    return out;
  }

  std::vector<LabelledGraph> graphs_;
  Names kinds_, labels_of_edges_;
  std::shared_ptr<GraphModel> model_;
};

}  // namespace

std::unique_ptr<Task> make_graphs(const RunOptions& run_options) {
  return std::make_unique<Graphs>(run_options);
}

}  // namespace fovea::systems::relative_positions
