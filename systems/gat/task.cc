#include "systems/gat/task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "data/count_of.h"
#include "data/files/file.h"
#include "data/formats/csv.h"
#include "data/generated/graph.h"
#include "systems/gat/parts.h"
#include "systems/normaliser_option.h"
#include "train/fields.h"

namespace fovea::systems::gat {

void GraphAttention::read(const Source& source) {
  read_whole(source);
  if (!model_) return;  // the scaling is learnt after reading
  check_fits();
  set_input();
}

std::string GraphAttention::read_in_words() const {
  using data::count_of;
  std::string out =
      fmt::format("{} with {}, {}, {}; {} to learn from", count_of(graph_.nodes, "node"),
                  count_of(graph_.features, "feature"), count_of(edges_, "edge"),
                  count_of(graph_.classes, "class"), count_of(splits_.train.size(), "node"));
  out += data::left_out_in_words(graph_.left_out);
  if (!graph_.edge_columns.empty())
    out += fmt::format("; of the edges {} is not read", data::in_short(graph_.edge_columns));
  return out;
}

void GraphAttention::prepare() {
  known_ = known_of(graph_);
  if (known_.classes < 2)
    throw data::FileError(
        source_.path, 0,
        data::count_of(known_.classes, "class",
                       " among the labels, expected at least 2 in the column label"));
  const std::string& features = run_options_.options.text("features");
  if (known_.words && features == "columns")
    throw data::FileError(source_.path, 0,
                          "features=columns: the features are words, expected rows or auto");
  if (!known_.words && features != "rows") scaling_ = scaling_of(graph_, splits_.train);
  set_input();
}

Assets GraphAttention::assets() const {
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

void GraphAttention::restore(const Assets& assets) {
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

std::shared_ptr<torch::nn::Module> GraphAttention::build() {
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

Loss GraphAttention::loss(const Batch& batch) {
  if (!part_) return ClassificationTask::loss(batch);
  const Held held = held_of(*part_, at_positions(splits_.train, batch.items));
  const torch::Tensor scores = model_->forward(input_).index_select(0, index_of(held.places));
  const torch::Tensor sum = torch::nn::functional::cross_entropy(
      scores, classes(held.nodes),
      torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
  const auto count = static_cast<int64_t>(held.nodes.size());
  return {sum / static_cast<double>(std::max<int64_t>(count, 1)), count};
}

torch::Tensor GraphAttention::logits(std::span<const int64_t> items) {
  if (judged_) return judged_->scores_of(items);
  if (part_) return part_->rows_of({items.begin(), items.end()}, model_->forward(input_));
  const torch::Tensor rows =
      torch::tensor(at::ArrayRef<int64_t>(items.data(), items.size()), torch::kInt64);
  return model_->forward(input_).index_select(0, rows.to(run_options_.device));
}

void GraphAttention::begin_epoch(int64_t, const std::vector<Metrics>& history) {
  least_loss_ = std::numeric_limits<double>::infinity();
  best_accuracy_ = joint_ = 0;
  for (const Metrics& epoch : history) {
    if (!epoch.contains("joint")) continue;
    least_loss_ = std::min(least_loss_, epoch.at("loss"));
    best_accuracy_ = std::max(best_accuracy_, epoch.at("accuracy"));
    joint_ = epoch.at("joint");
  }
}

Metrics GraphAttention::validate() {
  if (splits_.validation.empty()) return {};
  const torch::Tensor scores = logits(splits_.validation), truth = classes(splits_.validation);
  const double loss = torch::nn::functional::cross_entropy(scores, truth).item<double>();
  const double accuracy = scores.argmax(1).eq(truth).to(torch::kFloat64).mean().item<double>();
  return {{"loss", loss},
          {"accuracy", accuracy},
          {"joint", joint_ + (loss <= least_loss_ && accuracy >= best_accuracy_)}};
}

std::vector<int> GraphAttention::hits(std::span<const int64_t> items) {
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

Written GraphAttention::write() const {
  Written out{.files = data::planetoid_files(graph_),
              .truth = "truth.jsonl, which nodes are surveys, which should get little weight"};
  for (size_t node = 0; node < survey_.size(); ++node)
    out.files["truth.jsonl"] += Json{{"node", node}, {"survey", survey_[node] != 0}}.dump() + "\n";
  return out;
}

Evaluation GraphAttention::evaluate(Split split) {
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

void GraphAttention::read_whole(const Source& source) {
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

void GraphAttention::set_input() {
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

torch::Tensor GraphAttention::index_of(const std::vector<int64_t>& places) const {
  return torch::tensor(at::ArrayRef<int64_t>(places), torch::kInt64).to(run_options_.device);
}

Judged GraphAttention::judged_together(const std::vector<int64_t>& nodes) {
  const torch::Tensor scores = part_->rows_of(nodes, model_->forward(input_));
  if (survey_.empty()) return {nodes, scores, {}};
  const Held held = held_of(*part_, nodes);
  torch::Tensor looks =
      torch::zeros({static_cast<int64_t>(part_->nodes().size()), kLooks}, torch::kFloat64);
  looks.index_copy_(0, torch::tensor(at::ArrayRef<int64_t>(held.places), torch::kInt64),
                    looks_of(model_->look(input_).front(), surveyed(), held.nodes));
  return {nodes, scores, part_->rows_of(nodes, looks)};
}

void GraphAttention::check_fits() {
  known_.check_fits(graph_, source_.path);
  labels_ = graph_.labels;
}

std::unique_ptr<Task> make_graph_attention(const RunOptions& run_options) {
  return std::make_unique<GraphAttention>(run_options);
}

}  // namespace fovea::systems::gat
