#include "systems/gat/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "data/files/file.h"
#include "data/formats/bags.h"
#include "data/formats/text.h"
#include "data/generated/graph.h"
#include "data/packed.h"
#include "systems/gat/model.h"
#include "systems/gat/parts.h"
#include "systems/gat/view.h"
#include "systems/normaliser_option.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/fields.h"

namespace fovea::systems::gat {
namespace {

constexpr int64_t kNodesDrawn = 60, kWidestDrawn = 14;

// An item is a node. A step is one pass over the whole graph; the loss is that of the training
// nodes.
class GraphAttention : public ClassificationTask {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    source_ = source;
    survey_.clear();
    if (source.path.empty()) {
      data::GeneratedGraph made =
          data::generate_graph({.nodes = run_options_.options.integer("nodes"),
                                .edges = run_options_.options.integer("edges"),
                                .features = run_options_.options.integer("words"),
                                .classes = run_options_.options.integer("classes"),
                                .seed = source.seed});
      graph_ = std::move(made.graph);
      survey_ = std::move(made.survey);
    } else {
      graph_ = data::read_graph(source.path);
    }
    sees_ = run_options_.options.flag("directed")
                ? data::directed_with_loops(graph_.nodes, graph_.edges)
                : data::symmetric_with_loops(graph_.nodes, graph_.edges);
    labels_ = graph_.labels;
    splits_ = parts_of(graph_, source);
    if (!model_) return;  // the scaling is learnt after reading
    check_fits();
    input_ = input_of(graph_, sees_, scaling_).to(run_options_.device);
  }

  std::string read_in_words() const override {
    return fmt::format("{} nodes with {} features, {} edges, {} classes; {} nodes to learn from",
                       graph_.nodes, graph_.features, graph_.edges.size(), graph_.classes,
                       splits_.train.size());
  }

  void prepare() override {
    features_ = graph_.features;
    classes_ = graph_.classes;
    words_ = !graph_.words.empty();
    class_names_ = graph_.class_names;
    if (classes_ < 2)
      throw data::FileError(
          source_.path, 0,
          fmt::format("{} classes among the labels, expected at least 2 in the column label",
                      classes_));
    const std::string& features = run_options_.options.text("features");
    if (words_ && features == "columns")
      throw data::FileError(source_.path, 0,
                            "features=columns: the features are words, expected rows or auto");
    if (!words_ && features != "rows") scaling_ = scaling_of(graph_, splits_.train);
    input_ = input_of(graph_, sees_, scaling_).to(run_options_.device);
  }
  Assets assets() const override {
    return {.facts = {{"features", features_},
                      {"classes", classes_},
                      {"words", words_},
                      {"class_names", class_names_},
                      {"mean", scaling_.mean},
                      {"deviation", scaling_.deviation},
                      {"data", source_.path},
                      {"data_seed", source_.seed}},
            .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    features_ = facts.integer("features", 1, data::kMostFeatures);
    classes_ = facts.integer("classes", 2, data::kMostFeatures);
    words_ = facts.flag("words");
    class_names_ = facts.texts("class_names");
    // Rows of words have no scaling; neither have runs of earlier versions.
    if (facts.has("mean") && !facts.list("mean").empty())
      scaling_ = data::kept_scaling(facts.numbers("mean"), facts.numbers("deviation"), features_);
    source_.path = facts.text("data");
    source_.seed = facts.seed("data_seed");
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& options = run_options_.options;
    return model_ = std::make_shared<Model>(
               Shape{.features = features_,
                     .classes = classes_,
                     .layers = options.integer("layers"),
                     .heads = options.integer("heads"),
                     .width = options.integer("width"),
                     .output_heads = options.integer("output_heads"),
                     .dropout = options.number("dropout"),
                     .attention_dropout = options.number("attention_dropout"),
                     .dynamic = options.text("version") == "gatv2",
                     .normaliser = normaliser_named(options.text("normaliser"))});
  }

  torch::Tensor logits(std::span<const int64_t> items) override {
    const torch::Tensor rows =
        torch::tensor(at::ArrayRef<int64_t>(items.data(), items.size()), torch::kInt64);
    return model_->forward(input_).index_select(0, rows.to(run_options_.device));
  }

  // The authors keep the last weights whose loss and accuracy on the validation nodes were both the
  // best so far: `joint` counts these epochs. (Their patience of 100 counts from the last epoch in
  // which either was the best. 300 from the last epoch in which both were gives about the same.)
  // Every epoch is one step, so its evaluation must take no longer than one pass.
  void begin_epoch(int64_t, const std::vector<Metrics>& history) override {
    least_loss_ = std::numeric_limits<double>::infinity();
    best_accuracy_ = joint_ = 0;
    for (const Metrics& epoch : history) {
      if (!epoch.contains("joint")) continue;
      least_loss_ = std::min(least_loss_, epoch.at("loss"));
      best_accuracy_ = std::max(best_accuracy_, epoch.at("accuracy"));
      joint_ = epoch.at("joint");
    }
  }
  // `joint` counts epochs that were the best; the epochs between two of them do not count.
  bool ties_go_to_the_lower_loss() const override { return false; }
  Metrics validate() override {
    if (splits_.validation.empty()) return {};
    const torch::Tensor scores = logits(splits_.validation), truth = classes(splits_.validation);
    const double loss = torch::nn::functional::cross_entropy(scores, truth).item<double>();
    const double accuracy = scores.argmax(1).eq(truth).to(torch::kFloat64).mean().item<double>();
    return {{"loss", loss},
            {"accuracy", accuracy},
            {"joint", joint_ + (loss <= least_loss_ && accuracy >= best_accuracy_)}};
  }

  // Generated graphs: whether the neighbour with the most weight (the heads of the first layer
  // together, the node itself aside) is not a survey.
  std::vector<int> hits(std::span<const int64_t> items) override {
    std::vector<int> out;
    if (survey_.empty()) return out;
    const Layer::Parts first = model_->look(input_).front();
    int64_t widest = 1;
    for (const int64_t node : items) widest = std::max(widest, degree(node));
    const torch::Tensor rows =
        torch::tensor(at::ArrayRef<int64_t>(items.data(), items.size()), torch::kInt64)
            .to(run_options_.device);
    const SelectedWeights found =
        weights(first.query, first.key, first.choices, {.rows = rows, .top_k = widest});
    const auto count = static_cast<int64_t>(items.size());
    const torch::Tensor weight = found.weights.reshape({-1, count, widest}).cpu(),
                        index = found.indices.reshape({-1, count, widest})
                                    .to(torch::kCPU, torch::kInt64);
    count_zeros(weight.masked_select(index.ge(0)));
    for (int64_t i = 0; i < count; ++i)
      out.push_back(looks_at_a_paper(items[static_cast<size_t>(i)],
                                     weight.select(1, i).contiguous(),
                                     index.select(1, i).contiguous()));
    return out;
  }

  Written write() const override {
    Written out{.files = data::planetoid_files(graph_),
                .truth = "truth.jsonl, which nodes are surveys, which should get little weight"};
    for (size_t node = 0; node < survey_.size(); ++node)
      out.files["truth.jsonl"] +=
          Json{{"node", node}, {"survey", survey_[node] != 0}}.dump() + "\n";
    return out;
  }

  // A line is a node: its id, or its number from 0 if nodes have no ids. A line that names a folder
  // is for all nodes of the graph in it, labelled or not; nodes in later lines are of that graph.
  void predict(Input input, std::ostream& out) override {
    torch::Tensor p;
    answer_lines(input, out, [&](size_t line, std::string_view text) {
      std::vector<std::pair<std::string, int64_t>> asked;  // name and number of each node
      const bool whole = is_graph(text);
      if (whole)
        read_other(text);
      else if (!p.defined())
        read_own();
      if (whole || !p.defined()) p = model_->forward(input_).softmax(1).cpu();
      if (whole) {
        for (int64_t node = 0; node < graph_.nodes; ++node)
          asked.emplace_back(name_of_node(graph_, node), node);
        return answered(asked, p);
      }
      const std::vector<std::string> named = data::words(text);
      if (named.empty())
        throw data::FileError(input.name, line, "a blank line, expected the name of a node");
      for (const std::string& word : named)
        asked.emplace_back(word, node_named(word, input.name, line));
      return answered(asked, p);
    });
  }

  // A user's own graph may have no labels to evaluate with.
  Evaluation evaluate(Split split) override {
    if (source_.all_test && splits_.test.empty())
      throw data::FileError(
          source_.path, 0,
          "no node has a label, expected some to evaluate; fovea predict works on such a graph");
    return ClassificationTask::evaluate(split);
  }

  // Neighbourhoods of the nodes that the input names, or of some test nodes with neighbours. The
  // first line may name the folder of another graph, as for predict: then of its nodes.
  std::vector<explain::Explanation> explain(Input* input) override {
    std::vector<int64_t> nodes;
    bool ready = false;
    if (input)
      data::each_line(input->stream, input->name, [&](size_t line, std::string_view text) {
        const bool whole = is_graph(text);
        if (whole && ready)
          throw data::FileError(input->name, line,
                                "a folder, expected a node; a page has one graph, which the first "
                                "line may name");
        if (whole)
          read_other(text);
        else if (!ready)
          read_own();
        ready = true;
        if (whole) return;
        for (const std::string& word : data::words(text))
          nodes.push_back(node_named(word, input->name, line));
      });
    else
      read_own();
    if (nodes.empty() && (own_ || !input)) nodes = nodes_worth_drawing();
    std::vector<int64_t> distinct;
    for (const int64_t node : nodes)
      if (std::find(distinct.begin(), distinct.end(), node) == distinct.end())
        distinct.push_back(node);
    if (distinct.empty()) return {};
    return pictures({*model_, input_, graph_, sees_, distinct, survey_,
                     run_options_.options.text("version") == "gatv2"});
  }

 private:
  // The classes of some nodes; p [nodes, classes].
  Answered answered(const std::vector<std::pair<std::string, int64_t>>& asked,
                    const torch::Tensor& p) const {
    Answered out;
    for (const auto& [name, node] : asked)
      out.text += fmt::format("{}\t{}\t{:.4f}\n", name,
                              name_of_class(graph_, p[node].argmax().item<int64_t>()),
                              p[node].max().item<double>());
    out.fields = [this, asked, p] {
      std::vector<std::string> classes;
      for (int64_t c = 0; c < p.size(1); ++c) classes.push_back(name_of_class(graph_, c));
      Json nodes = Json::array();
      for (const auto& [name, node] : asked) {
        nodes.push_back({{"node", name}});
        nodes.back().update(class_fields(classes, to_floats(p[node])));
      }
      return nodes;
    };
    return out;
  }

  // Reads the graph of the training, unless it is the current one.
  void read_own() {
    if (own_)
      read(*std::exchange(own_, std::nullopt));
    else if (graph_.nodes == 0)
      read(source_);
  }

  // A folder, if the current graph has no node of that name.
  bool is_graph(std::string_view text) const {
    std::error_code ignored;
    return std::filesystem::is_directory(std::filesystem::path(text), ignored) &&
           std::find(graph_.names.begin(), graph_.names.end(), text) == graph_.names.end();
  }
  void read_other(std::string_view folder) {
    if (!own_) own_ = source_;
    read({.path = std::string(folder), .all_test = true});
  }

  // Brings the graph's classes into the order of the training; some of them may be missing.
  void check_fits() {
    if (graph_.features != features_)
      throw data::FileError(
          source_.path, 0,
          fmt::format("{} features, expected {} as in training", graph_.features, features_));
    if (graph_.words.empty() == words_)
      throw data::FileError(source_.path, 0, "features of another kind than in training");
    std::vector<int64_t> known;
    for (const std::string& name : graph_.class_names) {
      const auto found = std::find(class_names_.begin(), class_names_.end(), name);
      if (found == class_names_.end())
        throw data::FileError(source_.path, 0,
                              fmt::format("class {}, expected one of training's: {}",
                                          data::shown(name), fmt::join(class_names_, ", ")));
      known.push_back(found - class_names_.begin());
    }
    if (graph_.class_names.empty() && graph_.classes > classes_)
      throw data::FileError(
          source_.path, 0,
          fmt::format("{} classes, expected at most {} as in training", graph_.classes, classes_));
    if (!known.empty())
      for (int64_t& label : graph_.labels)
        if (label >= 0) label = known[static_cast<size_t>(label)];
    graph_.class_names = class_names_;
    graph_.classes = classes_;
    labels_ = graph_.labels;
  }

  int64_t node_named(const std::string& word, const std::string& name, size_t line) const {
    if (graph_.names.empty()) {
      const int64_t node = data::parse_integer(word, "node", name, line);
      if (node < 0 || node >= graph_.nodes)
        throw data::FileError(name, line,
                              fmt::format("node {}, expected 0 to {}", node, graph_.nodes - 1));
      return node;
    }
    const auto found = std::find(graph_.names.begin(), graph_.names.end(), word);
    if (found == graph_.names.end())
      throw data::FileError(name, line,
                            fmt::format("node {} is not in the graph", data::shown(word)));
    return found - graph_.names.begin();
  }

  // Test nodes with few enough neighbours to draw. For a generated graph, first those that have
  // both papers and surveys among their neighbours: the page is about that choice.
  std::vector<int64_t> nodes_worth_drawing() const {
    std::vector<int64_t> out;
    std::vector<int64_t> from = splits_.test;
    if (from.empty()) {  // nothing is labelled
      from.resize(static_cast<size_t>(graph_.nodes));
      std::iota(from.begin(), from.end(), 0);
    }
    for (const int64_t node : from)
      if (degree(node) >= 5 && degree(node) <= kWidestDrawn) out.push_back(node);
    if (out.empty()) out = std::move(from);
    std::stable_partition(out.begin(), out.end(),
                          [this](int64_t node) { return sees_papers_and_surveys(node); });
    out.resize(std::min(out.size(), static_cast<size_t>(kNodesDrawn)));
    return out;
  }

  bool sees_papers_and_surveys(int64_t node) const {
    if (survey_.empty()) return false;
    int64_t surveys = 0, others = 0;
    for (int64_t e = sees_.row_offsets[static_cast<size_t>(node)];
         e < sees_.row_offsets[static_cast<size_t>(node) + 1]; ++e) {
      const int64_t key = sees_.columns[static_cast<size_t>(e)];
      if (key == node) continue;
      ++others;
      surveys += survey_[static_cast<size_t>(key)];
    }
    return surveys > 0 && surveys < others;
  }

  int64_t degree(int64_t node) const {
    return sees_.row_offsets[static_cast<size_t>(node) + 1] -
           sees_.row_offsets[static_cast<size_t>(node)];
  }

  // 1 if the neighbour with the most weight, all heads together, is not a survey; -1 if there is no
  // choice.
  int looks_at_a_paper(int64_t node, const torch::Tensor& weight,
                       const torch::Tensor& index) const {
    std::map<int64_t, double> sums;  // by neighbour, ascending: ties go to the lower index
    for (int64_t i = 0; i < index.numel(); ++i)
      if (const int64_t key = index.data_ptr<int64_t>()[i]; key >= 0 && key != node)
        sums[key] += weight.data_ptr<float>()[i];
    int64_t best = -1, papers = 0;
    for (const auto& [key, sum] : sums) {
      papers += !survey_[static_cast<size_t>(key)];
      if (best < 0 || sum > sums.at(best)) best = key;
    }
    const bool open_question = papers > 0 && papers < static_cast<int64_t>(sums.size());
    return open_question ? !survey_[static_cast<size_t>(best)] : -1;
  }

  Source source_;
  std::optional<Source> own_;  // if the current graph is another one
  data::CitationGraph graph_;
  data::Csr sees_;
  data::Scaling scaling_;  // empty: rows are divided by their sums
  GraphInput input_;
  std::vector<uint8_t> survey_;
  int64_t features_ = 0, classes_ = 0;
  double least_loss_ = 0, best_accuracy_ = 0, joint_ = 0;  // of the epochs so far
  bool words_ = false;
  std::vector<std::string> class_names_;
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_graph_attention(const RunOptions& run_options) {
  return std::make_unique<GraphAttention>(run_options);
}

}  // namespace fovea::systems::gat
