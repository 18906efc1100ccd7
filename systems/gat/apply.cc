// predict and explain of graph attention, on nodes of the training's graph or of another.
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <filesystem>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "data/packed.h"
#include "systems/gat/task.h"
#include "systems/gat/view.h"
#include "train/answers.h"

namespace fovea::systems::gat {

void GraphAttention::predict(Input input, std::ostream& out) {
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

std::vector<explain::Explanation> GraphAttention::explain(Input* input) {
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
  if (nodes.empty() && (own_ || !input)) nodes = nodes_worth_drawing(sees_, splits_.test, survey_);
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

Answered GraphAttention::answered(const std::vector<std::pair<std::string, int64_t>>& asked,
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

void GraphAttention::read_own() {
  if (own_)
    read_alone(*std::exchange(own_, std::nullopt));
  else if (graph_.nodes == 0 || part_)
    read_alone(Source(source_));
}

void GraphAttention::read_alone(const Source& source) {
  read_whole(source);
  check_fits();
  input_ = input_of(graph_, sees_, scaling_).to(run_options_.device);
}

bool GraphAttention::is_graph(std::string_view text) const {
  std::error_code ignored;
  return std::filesystem::is_directory(std::filesystem::path(text), ignored) &&
         std::find(graph_.names.begin(), graph_.names.end(), text) == graph_.names.end();
}

void GraphAttention::read_other(std::string_view folder) {
  if (!own_) own_ = source_;
  read_alone({.path = std::string(folder), .all_test = true});
}

}  // namespace fovea::systems::gat
