#include "systems/gat/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "data/files/file.h"
#include "data/formats/bags.h"
#include "data/formats/text.h"
#include "data/generated/graph.h"
#include "data/packed.h"
#include "systems/gat/divided.h"
#include "systems/gat/known.h"
#include "systems/gat/looks.h"
#include "systems/gat/model.h"
#include "systems/gat/parts.h"
#include "systems/gat/view.h"
#include "systems/normaliser_option.h"
#include "train/answers.h"
#include "train/classification_task.h"
#include "train/descent/held_items.h"
#include "train/fields.h"

namespace fovea::systems::gat {
namespace {

// An item is a node. A step is one pass over the whole graph; the loss is that of the training
// nodes.
class GraphAttention : public ClassificationTask, public train::HeldItems {
 public:
  using ClassificationTask::ClassificationTask;

  void read(const Source& source) override {
    read_whole(source);
    if (!model_) return;  // the scaling is learnt after reading
    check_fits();
    set_input();
  }

  std::string read_in_words() const override {
    return fmt::format("{} nodes with {} features, {} edges, {} classes; {} nodes to learn from",
                       graph_.nodes, graph_.features, edges_, graph_.classes, splits_.train.size());
  }

  void prepare() override {
    known_ = known_of(graph_);
    if (known_.classes < 2)
      throw data::FileError(
          source_.path, 0,
          fmt::format("{} classes among the labels, expected at least 2 in the column label",
                      known_.classes));
    const std::string& features = run_options_.options.text("features");
    if (known_.words && features == "columns")
      throw data::FileError(source_.path, 0,
                            "features=columns: the features are words, expected rows or auto");
    if (!known_.words && features != "rows") scaling_ = scaling_of(graph_, splits_.train);
    set_input();
  }
  Assets assets() const override {
    return {.facts = {{"features", known_.features},
                      {"classes", known_.classes},
                      {"words", known_.words},
                      {"class_names", known_.class_names},
                      {"columns", known_.feature_names},
                      {"mean", scaling_.mean},
                      {"deviation", scaling_.deviation},
                      {"data", source_.path},
                      {"data_seed", source_.seed}},
            .files = {}};
  }
  void restore(const Assets& assets) override {
    const train::Fields facts(assets.facts, "facts.");
    known_.features = facts.integer("features", 1, data::kMostFeatures);
    known_.classes = facts.integer("classes", 2, data::kMostFeatures);
    known_.words = facts.flag("words");
    known_.class_names = facts.texts("class_names");
    if (facts.has("columns"))  // older runs: none
      known_.feature_names = data::kept_features(known_.features, facts.texts("columns")).names;
    // Rows of words have no scaling, and runs of earlier versions have none either.
    if (facts.has("mean") && !facts.list("mean").empty())
      scaling_ =
          data::kept_scaling(facts.numbers("mean"), facts.numbers("deviation"), known_.features);
    source_.path = facts.text("data");
    source_.seed = facts.seed("data_seed");
  }

  std::shared_ptr<torch::nn::Module> build() override {
    const OptionValues& options = run_options_.options;
    return model_ = std::make_shared<Model>(
               Shape{.features = known_.features,
                     .classes = known_.classes,
                     .layers = options.integer("layers"),
                     .heads = options.integer("heads"),
                     .width = options.integer("width"),
                     .output_heads = options.integer("output_heads"),
                     .dropout = options.number("dropout"),
                     .attention_dropout = options.number("attention_dropout"),
                     .dynamic = options.text("version") == "gatv2",
                     .normaliser = normaliser_named(options.text("normaliser"))});
  }

  bool ranks_hold_items() const override {
    return run_options_.options.text("partition") != "whole";
  }

  // Where the graph is divided: of the nodes that this rank holds.
  Loss loss(const Batch& batch) override {
    if (!part_) return ClassificationTask::loss(batch);
    const Held held = held_of(*part_, at_positions(splits_.train, batch.items));
    const torch::Tensor scores = model_->forward(input_).index_select(0, index_of(held.places));
    const torch::Tensor sum = torch::nn::functional::cross_entropy(
        scores, classes(held.nodes),
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
    const auto count = static_cast<int64_t>(held.nodes.size());
    return {sum / static_cast<double>(std::max<int64_t>(count, 1)), count};
  }

  // Where the graph is divided, all ranks call it, unless an evaluation has found them already.
  torch::Tensor logits(std::span<const int64_t> items) override {
    if (judged_) return judged_->scores_of(items);
    if (part_) return part_->rows_of({items.begin(), items.end()}, model_->forward(input_));
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
    if (survey_.empty()) return {};
    const torch::Tensor looks = judged_ ? judged_->looks_of(items)
                                        : looks_of(model_->look(input_).front(), surveyed(), items);
    count_zeros(looks.select(1, kWeights).sum().item<double>(),
                looks.select(1, kZeros).sum().item<double>());
    std::vector<int> out;
    for (int64_t i = 0; i < looks.size(0); ++i)
      out.push_back(static_cast<int>(looks[i][kHit].item<double>()));
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

  // A line is a node: its id, or its number from 0 if nodes have no ids; or several, if no id is the
  // whole line. A line that names a folder
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
      const std::vector<std::string> named = names_in(graph_, text);
      if (named.empty())
        throw data::FileError(input.name, line, "a blank line, expected the name of a node");
      for (const std::string& word : named)
        asked.emplace_back(word, node_named(graph_, word, input.name, line));
      return answered(asked, p);
    });
  }

  // A user's own graph may have no labels to evaluate with.
  Evaluation evaluate(Split split) override {
    if (source_.all_test && splits_.test.empty())
      throw data::FileError(
          source_.path, 0,
          "no node has a label, expected some to evaluate; fovea predict works on such a graph");
    if (!part_) return ClassificationTask::evaluate(split);
    judged_ = judged_together(splits_.of(split));
    const Evaluation found = ClassificationTask::evaluate(split);
    judged_.reset();
    return found;
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
        for (const std::string& word : names_in(graph_, text))
          nodes.push_back(node_named(graph_, word, input->name, line));
      });
    else
      read_own();
    if (nodes.empty() && (own_ || !input))
      nodes = nodes_worth_drawing(sees_, splits_.test, survey_);
    std::vector<int64_t> distinct;
    for (const int64_t node : nodes)
      if (std::find(distinct.begin(), distinct.end(), node) == distinct.end())
        distinct.push_back(node);
    if (distinct.empty()) return {};
    Shown shown{*model_,
                input_,
                graph_,
                sees_,
                distinct,
                survey_,
                run_options_.options.text("version") == "gatv2"};
    if (!input) shown.nodes = telling_first(shown);
    return pictures(shown);
  }

 private:
  void read_whole(const Source& source) {
    source_ = source;
    survey_.clear();
    if (source.path.empty()) {
      data::GeneratedGraph made =
          data::generate_graph({.nodes = run_options_.options.integer("nodes"),
                                .edges = run_options_.options.integer("edges"),
                                .features = run_options_.options.integer("words"),
                                .classes = run_options_.options.integer("classes"),
                                .reach = run_options_.options.integer("reach"),
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
    edges_ = graph_.edges.size();
    part_.reset();
  }

  // This rank's part where ranks divide the graph, otherwise all of it.
  void set_input() {
    const std::string& how = run_options_.options.text("partition");
    if (!run_options_.ranks || how == "whole") {
      input_ = input_of(graph_, sees_, scaling_).to(run_options_.device);
      return;
    }
    part_ = own_part(sees_, how, *run_options_.ranks);
    sees_ = data::Csr(part_->rows());  // moved in, so that the whole graph's memory is given back
    input_ = input_of(taken_out(graph_, part_->nodes()), sees_, scaling_).to(run_options_.device);
    input_.with_neighbours = [part = part_](const torch::Tensor& own) {
      return part->with_neighbours(own);
    };
  }

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

  torch::Tensor index_of(const std::vector<int64_t>& places) const {
    return torch::tensor(at::ArrayRef<int64_t>(places), torch::kInt64).to(run_options_.device);
  }

  Surveyed surveyed() const { return {.sees = sees_, .survey = survey_, .part = part_.get()}; }

  // All ranks: the scores of some nodes, and where they look, each found by the rank that holds it.
  Judged judged_together(const std::vector<int64_t>& nodes) {
    const torch::Tensor scores = part_->rows_of(nodes, model_->forward(input_));
    if (survey_.empty()) return {nodes, scores, {}};
    const Held held = held_of(*part_, nodes);
    torch::Tensor looks =
        torch::zeros({static_cast<int64_t>(part_->nodes().size()), kLooks}, torch::kFloat64);
    looks.index_copy_(0, torch::tensor(at::ArrayRef<int64_t>(held.places), torch::kInt64),
                      looks_of(model_->look(input_).front(), surveyed(), held.nodes));
    return {nodes, scores, part_->rows_of(nodes, looks)};
  }

  // Reads the graph of the training, unless it is the current one.
  void read_own() {
    if (own_)
      read_alone(*std::exchange(own_, std::nullopt));
    else if (graph_.nodes == 0 || part_)
      read_alone(Source(source_));
  }
  // For what one rank answers, or draws.
  void read_alone(const Source& source) {
    read_whole(source);
    check_fits();
    input_ = input_of(graph_, sees_, scaling_).to(run_options_.device);
  }

  // A folder, if the current graph has no node of that name.
  bool is_graph(std::string_view text) const {
    std::error_code ignored;
    return std::filesystem::is_directory(std::filesystem::path(text), ignored) &&
           std::find(graph_.names.begin(), graph_.names.end(), text) == graph_.names.end();
  }
  void read_other(std::string_view folder) {
    if (!own_) own_ = source_;
    read_alone({.path = std::string(folder), .all_test = true});
  }

  void check_fits() {
    known_.check_fits(graph_, source_.path);
    labels_ = graph_.labels;
  }

  Source source_;
  std::optional<Source> own_;  // if the current graph is another one
  data::CitationGraph graph_;
  data::Csr sees_;
  data::Scaling scaling_;  // empty: rows are divided by their sums
  GraphInput input_;
  size_t edges_ = 0;                              // as in the file
  std::shared_ptr<const train::GraphPart> part_;  // null: this process has the whole graph
  std::optional<Judged> judged_;                  // while an evaluation of a divided graph runs
  std::vector<uint8_t> survey_;
  Known known_;
  double least_loss_ = 0, best_accuracy_ = 0, joint_ = 0;  // of the epochs so far
  std::shared_ptr<Model> model_;
};

}  // namespace

std::unique_ptr<Task> make_graph_attention(const RunOptions& run_options) {
  return std::make_unique<GraphAttention>(run_options);
}

}  // namespace fovea::systems::gat
