#include "systems/gat/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "data/files/file.h"
#include "data/formats/text.h"
#include "explain/capture.h"

namespace fovea::systems::gat {
namespace {

constexpr size_t kNodesDrawn = 60;
constexpr int64_t kWidestDrawn = 14;
constexpr size_t kNodesCounted = 8;  // as in web/views/graph.js: fewer make no histogram

// Nodes are numbered anew for the picture: those whose neighbourhood is drawn first, so that query
// i is key i, then the others.
struct Numbering {
  std::vector<int64_t> nodes;
  std::map<int64_t, int32_t> of;

  int32_t number(int64_t node) {
    const auto [place, fresh] = of.try_emplace(node, static_cast<int32_t>(nodes.size()));
    if (fresh) nodes.push_back(node);
    return place->second;
  }
};

Numbering numbering_of(const Shown& shown) {
  Numbering out;
  for (const int64_t node : shown.nodes) out.number(node);
  for (const int64_t node : shown.nodes)
    for (int64_t e = shown.sees.row_offsets[static_cast<size_t>(node)];
         e < shown.sees.row_offsets[static_cast<size_t>(node) + 1]; ++e)
      out.number(shown.sees.columns[static_cast<size_t>(e)]);
  return out;
}

// The weights of the nodes shown: every neighbour of each, by the engine's own count of the
// largest.
std::vector<explain::Map> maps_of(const Shown& shown, const Layer::Parts& parts,
                                  Numbering& numbering) {
  int64_t widest = 1;
  for (const int64_t node : shown.nodes) widest = std::max(widest, data::degree(shown.sees, node));
  const torch::Tensor rows = torch::tensor(at::ArrayRef<int64_t>(shown.nodes), torch::kInt64);
  const SelectedWeights found = weights(parts.query, parts.key, parts.choices,
                                        {.rows = rows.to(parts.query.device()), .top_k = widest});
  const int64_t heads = parts.query.size(1), drawn = rows.size(0);
  const torch::Tensor weight =
      found.weights.reshape({heads, drawn, widest}).to(torch::kCPU, torch::kFloat32).contiguous();
  const torch::Tensor index =
      found.indices.reshape({heads, drawn, widest}).to(torch::kCPU, torch::kInt64).contiguous();
  std::vector<explain::Map> out;
  for (int64_t head = 0; head < heads; ++head) {
    explain::Map& map = out.emplace_back();
    map.head = static_cast<int>(head);
    for (int64_t row = 0; row < drawn; ++row)
      for (int64_t k = 0; k < widest; ++k) {
        const int64_t at = (head * drawn + row) * widest + k, key = index.data_ptr<int64_t>()[at];
        if (key >= 0)
          map.links.push_back(
              {static_cast<int32_t>(row), numbering.number(key), weight.data_ptr<float>()[at]});
      }
  }
  return out;
}

// A node that sees only itself has nothing to decide.
size_t with_a_neighbour(const Shown& shown) {
  return static_cast<size_t>(
      std::count_if(shown.nodes.begin(), shown.nodes.end(),
                    [&](int64_t node) { return data::degree(shown.sees, node) > 1; }));
}

// What is written of a node's class: "(right, p = 0.889)", "(wrong: predicted b, p = 0.597)".
std::string said(const data::CitationGraph& graph, int64_t node, const torch::Tensor& p) {
  const int64_t label = graph.labels[static_cast<size_t>(node)], best = p.argmax().item<int64_t>();
  const std::string verdict = label < 0       ? "predicted " + name_of_class(graph, best)
                              : label == best ? "right"
                                              : "wrong: predicted " + name_of_class(graph, best);
  return fmt::format(" ({}, p = {:.3f})", verdict, p.max().item<double>());
}

std::string histogram_note(size_t counted, size_t drawn, size_t heads) {
  return fmt::format(
      "The histogram of entropies covers {} of the {} nodes of this picture, those with a "
      "neighbour "
      "beside themselves{}.",
      counted, drawn,
      heads > 1 ? fmt::format("; each counts once for each of {} heads", heads) : "");
}

bool sees_both(const data::Csr& sees, int64_t node, const std::vector<uint8_t>& look_past) {
  if (look_past.empty()) return false;
  int64_t past = 0, others = 0;
  for (int64_t e = sees.row_offsets[static_cast<size_t>(node)];
       e < sees.row_offsets[static_cast<size_t>(node) + 1]; ++e) {
    const int64_t key = sees.columns[static_cast<size_t>(e)];
    if (key == node) continue;
    ++others;
    past += look_past[static_cast<size_t>(key)];
  }
  return past > 0 && past < others;
}

}  // namespace

std::string name_of_node(const data::CitationGraph& graph, int64_t node) {
  return graph.names.empty() ? std::to_string(node) : graph.names[static_cast<size_t>(node)];
}

std::string name_of_class(const data::CitationGraph& graph, int64_t label) {
  return graph.class_names.empty() ? std::to_string(label)
                                   : graph.class_names[static_cast<size_t>(label)];
}

int64_t node_named(const data::CitationGraph& graph, const std::string& word,
                   const std::string& name, size_t line) {
  if (graph.names.empty()) {
    const int64_t node = data::parse_integer(word, "node", name, line);
    if (node < 0 || node >= graph.nodes)
      throw data::FileError(name, line,
                            fmt::format("node {}, expected 0 to {}", node, graph.nodes - 1));
    return node;
  }
  const auto found = std::find(graph.names.begin(), graph.names.end(), word);
  if (found == graph.names.end())
    throw data::FileError(name, line,
                          fmt::format("node {} is not in the graph", data::shown(word)));
  return found - graph.names.begin();
}

std::vector<std::string> names_in(const data::CitationGraph& graph, std::string_view line) {
  const size_t from = line.find_first_not_of(" \t\r"), to = line.find_last_not_of(" \t\r");
  const std::string whole =
      from == std::string_view::npos ? "" : std::string(line.substr(from, to - from + 1));
  if (std::find(graph.names.begin(), graph.names.end(), whole) != graph.names.end()) return {whole};
  return data::words(line);
}

std::vector<int64_t> nodes_worth_drawing(const data::Csr& sees, const std::vector<int64_t>& test,
                                         const std::vector<uint8_t>& look_past) {
  std::vector<int64_t> out, from = test;
  if (from.empty()) {  // nothing is labelled
    from.resize(sees.row_offsets.size() - 1);
    std::iota(from.begin(), from.end(), 0);
  }
  for (const int64_t node : from)
    if (data::degree(sees, node) >= 5 && data::degree(sees, node) <= kWidestDrawn)
      out.push_back(node);
  if (out.empty()) out = std::move(from);
  std::stable_partition(out.begin(), out.end(),
                        [&](int64_t node) { return sees_both(sees, node, look_past); });
  out.resize(std::min(out.size(), kNodesDrawn));
  return out;
}

std::vector<int64_t> telling_first(const Shown& shown) {
  const std::vector<Layer::Parts> layers = shown.model.look(shown.input);
  const torch::Tensor best = shown.model.forward(shown.input).argmax(1).cpu();
  const bool own = shown.look_past.empty();
  Numbering numbering = numbering_of(shown);
  std::vector<int> worth(shown.nodes.size());
  for (size_t i = 0; i < shown.nodes.size(); ++i) {
    const int64_t node = shown.nodes[i], label = shown.graph.labels[static_cast<size_t>(node)];
    const bool right = label == best[node].item<int64_t>();
    if (own ? !right && label >= 0 : right) worth[i] = 1000;
  }
  // Where it is known what misleads: the weight that lies there, over layers and heads, in per cent.
  for (const Layer::Parts& layer : layers) {
    if (own) break;
    const std::vector<explain::Map> maps = maps_of(shown, layer, numbering);
    for (const explain::Map& map : maps)
      for (const explain::Link& link : map.links)
        if (shown.look_past[static_cast<size_t>(numbering.nodes[static_cast<size_t>(link.key)])])
          worth[static_cast<size_t>(link.query)] -=
              static_cast<int>(100 * link.weight / static_cast<float>(maps.size()));
  }
  std::vector<size_t> order(shown.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  const auto sees = [&](size_t i) {
    return sees_both(shown.sees, shown.nodes[i], shown.look_past);
  };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(sees(a), worth[a]) > std::pair(sees(b), worth[b]);
  });
  std::vector<int64_t> out;
  for (const size_t i : order) out.push_back(shown.nodes[i]);
  return out;
}

std::vector<explain::Explanation> pictures(const Shown& shown) {
  const std::vector<Layer::Parts> layers = shown.model.look(shown.input);
  const torch::Tensor p = shown.model.forward(shown.input).softmax(1).cpu();
  Numbering numbering = numbering_of(shown);
  std::vector<explain::Explanation> out;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    explain::Explanation picture;
    picture.title = fmt::format("Whom a node listens to, layer {} of {}", layer + 1, layers.size());
    picture.view = explain::View::kGraph;
    explain::label(picture, layers[layer].choices, {}, layers[layer].query.size(2));
    picture.query_label = "node";
    picture.key_label = "neighbour";
    picture.layers = {"layer", {std::to_string(layer + 1)}};
    picture.heads.names.clear();
    for (int64_t head = 0; head < layers[layer].query.size(1); ++head)
      picture.heads.names.push_back(std::to_string(head + 1));
    picture.maps = maps_of(shown, layers[layer], numbering);
    for (const int64_t node : numbering.nodes) {
      const int64_t label = shown.graph.labels[static_cast<size_t>(node)];
      const bool past = !shown.look_past.empty() && shown.look_past[static_cast<size_t>(node)];
      const bool generated = !shown.look_past.empty();  // papers of fields, and surveys
      const std::string name = name_of_node(shown.graph, node);
      picture.keys.emplace_back().text =
          past        ? "survey " + name
          : label < 0 ? name
          : generated ? fmt::format("paper {} · field {}", name, label)
                      : fmt::format("{} · {}", name, name_of_class(shown.graph, label));
    }
    picture.queries.assign(picture.keys.begin(),
                           picture.keys.begin() + static_cast<int64_t>(shown.nodes.size()));
    if (!shown.look_past.empty()) {
      picture.truth = explain::Truth{.label = "not a survey"};
      for (const explain::Link& link : picture.maps.front().links)
        if (!shown.look_past[static_cast<size_t>(numbering.nodes[static_cast<size_t>(link.key)])])
          picture.truth->sure.push_back({link.query, link.key});
    }
    // With the name of the node: text above the picture would stay when the reader chooses another
    // node.
    for (size_t i = 0; i < shown.nodes.size(); ++i)
      picture.queries[i].text += said(shown.graph, shown.nodes[i], p[shown.nodes[i]]);
    // With one node there is no menu that would show its name.
    if (shown.nodes.size() == 1) picture.outcome = picture.queries.front().text;
    if (const size_t counted = with_a_neighbour(shown); counted >= kNodesCounted)
      picture.notes.push_back(histogram_note(counted, shown.nodes.size(), picture.maps.size()));
    if (std::holds_alternative<Uniform>(layers[layer].choices.normaliser)) {
      picture.notes.push_back(
          "Every neighbour has the same weight, whatever it says: a graph convolution, the control "
          "beside attention.");
    } else if (!shown.dynamic)
      picture.notes.push_back(
          "Within a head every node ranks its neighbours alike: LeakyReLU grows with a2·Wh_j "
          "whatever the query is. version=gatv2 lifts that.");
    picture.notes.push_back(
        "Every node sees itself; a node without neighbours sees itself alone, with weight 1.");
    out.push_back(std::move(picture));
  }
  return out;
}

}  // namespace fovea::systems::gat
