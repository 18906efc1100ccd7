// Models that know positions by their distance: of a sequence, and of a graph with labelled edges.
#pragma once

#include <torch/torch.h>

#include <vector>

#include "fovea/nn/layers.h"
#include "fovea/nn/relative_tables.h"
#include "train/named.h"

namespace fovea::systems::relative_positions {

// What says where a token stands.
enum class Positions {
  kRelative,    // tables of offsets in each layer
  kSinusoidal,  // sines added to the embeddings
  kBoth,
  kNone,
};
inline constexpr Named<Positions, 4> kPositionNames{{{"relative", Positions::kRelative},
                                                     {"sinusoidal", Positions::kSinusoidal},
                                                     {"both", Positions::kBoth},
                                                     {"none", Positions::kNone}}};

struct SequenceConfig {
  int64_t vocabulary = 0, width = 64, heads = 4, hidden = 128, layers = 2;
  int64_t clip = 16;
  Positions positions = Positions::kRelative;
  double dropout = 0;
};

// Keys and values of the tokens read so far.
struct SequenceCache {
  std::vector<nn::StepCache> layers;
  int64_t length() const { return layers.empty() ? 0 : layers[0].length(); }
};

// A causal Transformer, layer norm before each sublayer.
class SequenceModel : public torch::nn::Module {
 public:
  explicit SequenceModel(const SequenceConfig& config);
  torch::Tensor forward(const torch::Tensor& tokens);  // [B, L] -> [B, L, vocabulary]
  // New tokens [B, n] after those in the cache.
  torch::Tensor step(const torch::Tensor& tokens, SequenceCache& cache);
  // [layers, B, heads, rows, L] of these rows (int, undefined: all).
  torch::Tensor weights(const torch::Tensor& tokens, const torch::Tensor& rows = {});
  // What the key tables add to the scores by offset, mean over the queries of these tokens:
  // [layers, heads, 2 K + 1].
  torch::Tensor offset_bias(const torch::Tensor& tokens);
  const SequenceConfig& config() const { return config_; }
  bool has_tables() const { return !tables_.empty(); }

 private:
  torch::Tensor embedded(const torch::Tensor& tokens, int64_t first);
  nn::Attention attention(size_t layer) const;
  // Calls visit(layer, what its attention is given).
  template <class Visit>
  torch::Tensor walked(const torch::Tensor& tokens, Visit visit);

  SequenceConfig config_;
  torch::nn::Embedding embedding_{nullptr};
  std::vector<nn::EncoderLayer> layers_;
  std::vector<nn::RelativeTables> tables_;  // one for each layer, or none
  torch::nn::LayerNorm norm_{nullptr};
  torch::nn::Linear output_{nullptr};
};

struct GraphConfig {
  int64_t colours = 0, questions = 0, labels = 0, width = 32, heads = 4;
  bool labelled = true;  // false: all edges share one vector
};

// Graphs one after another: nodes, edges, and the node that is asked of each.
struct GraphBatch {
  torch::Tensor colours;    // int64 [nodes]
  torch::Tensor questions;  // int64 [nodes]; 0: no question
  Graph graph;
  torch::Tensor labels;  // int64 [edges]
  torch::Tensor asked;   // int64 [graphs]
  GraphBatch to(torch::Device device) const;
};

// One layer of attention over labelled edges.
class GraphModel : public torch::nn::Module {
 public:
  explicit GraphModel(const GraphConfig& config);
  torch::Tensor forward(const GraphBatch& batch);  // [graphs, colours]
  // Weights of the asked nodes' heaviest edges, as fovea::weights gives them.
  SelectedWeights weights(const GraphBatch& batch, int64_t most);

 private:
  struct Parts {
    torch::Tensor query, key, value;
  };
  Parts parts(const GraphBatch& batch);
  nn::EdgeLabels edges(const GraphBatch& batch) const;

  GraphConfig config_;
  torch::nn::Embedding colour_{nullptr}, question_{nullptr};
  torch::nn::Linear in_proj_{nullptr}, out_{nullptr};
  torch::Tensor key_table_, value_table_;
};

}  // namespace fovea::systems::relative_positions
