#include "systems/gat/divided.h"

#include <torch/torch.h>

#include "data/graphs/partition.h"

namespace fovea::systems::gat {

std::shared_ptr<const train::GraphPart> own_part(const data::Csr& sees, const std::string& how,
                                                 train::Ranks& ranks) {
  const auto owners =
      data::owners_of(sees, ranks.size(),
                      how == "edge_cut" ? data::Partition::kEdgeCut : data::Partition::kContiguous);
  return std::make_shared<const train::GraphPart>(sees, owners, ranks);
}

data::CitationGraph taken_out(data::CitationGraph& graph, const std::vector<int64_t>& nodes) {
  data::CitationGraph out;
  out.nodes = static_cast<int64_t>(nodes.size());
  out.features = graph.features;
  if (graph.has_words()) out.words.row_offsets.push_back(0);
  for (const int64_t node : nodes) {
    if (graph.has_words()) {
      const auto words = data::row_of(graph.words, static_cast<size_t>(node));
      out.words.columns.insert(out.words.columns.end(), words.begin(), words.end());
      out.words.row_offsets.push_back(static_cast<int32_t>(out.words.columns.size()));
    }
    if (graph.values.empty()) continue;
    const auto row = graph.values.begin() + node * graph.features;
    out.values.insert(out.values.end(), row, row + graph.features);
  }
  // `= {}` would empty a vector and keep its memory.
  graph.edges = decltype(graph.edges)();
  graph.words = data::Csr();
  graph.values = std::vector<float>();
  graph.labels = std::vector<int64_t>();
  return out;
}

Held held_of(const train::GraphPart& part, const std::vector<int64_t>& nodes) {
  Held out;
  for (const int64_t node : nodes)
    if (const int64_t place = part.place_of(node); place >= 0) {
      out.nodes.push_back(node);
      out.places.push_back(place);
    }
  return out;
}

Judged::Judged(const std::vector<int64_t>& nodes, torch::Tensor scores, torch::Tensor looks)
    : scores_(std::move(scores)), looks_(std::move(looks)) {
  for (size_t i = 0; i < nodes.size(); ++i) place_[nodes[i]] = static_cast<int64_t>(i);
}

torch::Tensor Judged::rows(const torch::Tensor& of_all, std::span<const int64_t> nodes) const {
  std::vector<int64_t> rows;
  for (const int64_t node : nodes) rows.push_back(place_.at(node));
  return of_all.index_select(
      0, torch::tensor(at::ArrayRef<int64_t>(rows), torch::kInt64).to(of_all.device()));
}

}  // namespace fovea::systems::gat
