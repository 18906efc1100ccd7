// Relative positions (Shaw et al. 2018): a vector for each offset, or for each label of an edge.
//
//   e_ij = q_i·(k_j + r_c) / √E,   o_i = Σ_j a_ij (v_j + r'_c),   c = clip(j − i, −K, K)
//
// The score goes into any attention: module(x, {.structure = Causal{}, .score = tables->score()}).
#pragma once

#include <torch/nn.h>

#include "fovea/attend.h"

namespace fovea::nn {

struct RelativeTablesOptions {
  int64_t width = 0;        // of a head's keys; the heads share the tables
  int64_t clip = 16;        // K: offsets beyond it are taken as K
  int64_t value_width = 0;  // of a head's values; 0: as the keys'
};

class RelativeTablesImpl : public torch::nn::Cloneable<RelativeTablesImpl> {
 public:
  explicit RelativeTablesImpl(const RelativeTablesOptions& options);
  void reset() override;
  // A scaled dot product with these tables.
  Score score() const { return Score(Dot{}).relative(key, value, options_.clip); }
  const RelativeTablesOptions& options() const { return options_; }

  at::Tensor key, value;  // [2 K + 1, width]; row K is the offset 0

 private:
  RelativeTablesOptions options_;
};
TORCH_MODULE(RelativeTables);

// Edges with labels: the tables have a row for each label instead of each offset.
struct EdgeLabels {
  at::Tensor labels;                  // int [edges], in the order of the graph's columns
  at::Tensor key_table, value_table;  // [labels, E], [labels, Ev]
};
// Attention over the edges of a graph: query, key and value (total, H, E).
at::Tensor attend_labelled(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                           const Graph& graph, const EdgeLabels& edges);
// Chosen weights of the same, for pictures; the keys are the graph's edges.
SelectedWeights labelled_weights(const at::Tensor& query, const at::Tensor& key, const Graph& graph,
                                 const EdgeLabels& edges, const Selection& selection = {});

}  // namespace fovea::nn
