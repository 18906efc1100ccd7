#include "fovea/nn/relative_tables.h"

#include <ATen/ATen.h>

#include "nn/positive.h"

namespace fovea::nn {
namespace {

constexpr double kFirstTable = 0.1;  // spread of the entries at first

// Each edge is a key of its own, for its label belongs to no node.
struct EdgeKeys {
  Graph graph;
  at::Tensor columns, labels;
};
EdgeKeys edge_keys(const Graph& graph, const EdgeLabels& edges) {
  if (edges.labels.dim() != 1 || edges.labels.size(0) != graph.columns.size(0))
    throw InvalidArgument("labels: " + std::to_string(edges.labels.numel()) + ", expected " +
                          std::to_string(graph.columns.size(0)) + ", one for each edge");
  return {{graph.row_offsets,
           at::arange(graph.columns.size(0), graph.columns.options().dtype(at::kInt))},
          graph.columns.to(at::kLong),
          edges.labels.to(at::kLong)};
}

at::Tensor of_edges(const at::Tensor& rows, const at::Tensor& table, const EdgeKeys& keys) {
  return rows.index_select(0, keys.columns) + table.index_select(0, keys.labels).unsqueeze(1);
}

}  // namespace

RelativeTablesImpl::RelativeTablesImpl(const RelativeTablesOptions& options) : options_(options) {
  check_positive("width", options.width);
  if (options.clip < 0)
    throw InvalidArgument("clip: " + std::to_string(options.clip) + ", expected 0 or more");
  reset();
}

void RelativeTablesImpl::reset() {
  const int64_t rows = 2 * options_.clip + 1;
  const int64_t values = options_.value_width > 0 ? options_.value_width : options_.width;
  key = register_parameter("key", kFirstTable * at::randn({rows, options_.width}));
  value = register_parameter("value", kFirstTable * at::randn({rows, values}));
}

at::Tensor attend_labelled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Graph& graph, const EdgeLabels& edges) {
  const EdgeKeys keys = edge_keys(graph, edges);
  return attend(query, of_edges(key, edges.key_table, keys),
                of_edges(value, edges.value_table, keys), {.structure = keys.graph});
}

SelectedWeights labelled_weights(const at::Tensor& query, const at::Tensor& key, const Graph& graph,
                                 const EdgeLabels& edges, const Selection& selection) {
  const at::NoGradGuard no_grad;
  const EdgeKeys keys = edge_keys(graph, edges);
  return fovea::weights(query, of_edges(key, edges.key_table, keys), {.structure = keys.graph},
                        selection);
}

}  // namespace fovea::nn
