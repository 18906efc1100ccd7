#include "systems/gat/parts.h"

#include <fmt/format.h>

#include "data/files/file.h"

namespace fovea::systems::gat {
namespace {

constexpr double kValidationShare = 0.2, kTestShare = 0.3;

// A node is known by its name, or by its number if the edges use numbers.
uint64_t key_of(const data::CitationGraph& graph, int64_t node) {
  return data::item_key(graph.names.empty() ? std::to_string(node)
                                            : graph.names[static_cast<size_t>(node)]);
}

// Classes as evenly mixed as they can be.
data::Splits at_random(const data::CitationGraph& graph, const std::vector<int64_t>& nodes,
                       data::SplitRequest request) {
  for (const int64_t node : nodes) {
    request.classes.push_back(graph.labels[static_cast<size_t>(node)]);
    request.keys.push_back(key_of(graph, node));
  }
  return data::split(nodes, request);
}

data::Splits completed(const data::CitationGraph& graph, const std::vector<int64_t>& rest,
                       const Source& source) {
  data::Splits out = graph.splits;
  if (out.train.empty() && rest.empty())
    throw data::FileError(source.path, 0,
                          "split: no node is marked train, and no labelled node is without a mark; "
                          "expected at least one");
  if (out.train.empty() && out.test.empty()) {
    data::SplitRequest request = split_request(source);
    request.validation = 0;
    request.test = kTestShare;
    data::Splits drawn = at_random(graph, rest, request);
    out.train = std::move(drawn.train);
    out.test = std::move(drawn.test);
  } else if (out.train.empty()) {
    out.train = rest;
  } else if (out.test.empty()) {
    out.test = rest;
  }
  return out;
}

data::Splits parts_without_keys(const data::CitationGraph& graph, const Source& source) {
  const data::Splits& given = graph.splits;
  std::vector<uint8_t> marked(static_cast<size_t>(graph.nodes));
  for (const auto* part : {&given.train, &given.validation, &given.test})
    for (const int64_t node : *part) {
      marked[static_cast<size_t>(node)] = 1;
      if (graph.labels[static_cast<size_t>(node)] < 0)
        throw data::FileError(source.path, 0,
                              fmt::format("node {} is in a split but has no label", node));
    }
  std::vector<int64_t> labelled, rest;
  for (int64_t node = 0; node < graph.nodes; ++node) {
    if (graph.labels[static_cast<size_t>(node)] < 0) continue;
    labelled.push_back(node);
    if (!marked[static_cast<size_t>(node)]) rest.push_back(node);
  }
  if (source.all_test) return {.train = {}, .validation = {}, .test = labelled};
  if (source.folds == 0 && rest.size() < labelled.size()) return completed(graph, rest, source);
  data::SplitRequest request = split_request(source);
  request.validation = kValidationShare;
  request.test = kTestShare;
  return at_random(graph, labelled, request);
}

}  // namespace

data::Splits parts_of(const data::CitationGraph& graph, const Source& source) {
  data::Splits out = parts_without_keys(graph, source);
  for (int64_t node = 0; node < graph.nodes; ++node) out.keys.push_back(key_of(graph, node));
  return out;
}

}  // namespace fovea::systems::gat
