// Graph attention networks, Veličković et al. 2018; GATv2's score, Brody et al. 2022, as an option.
//
//   e_ij = LeakyReLU(a1·W h_i + a2·W h_j)      (v2: a·LeakyReLU(W1 h_i + W2 h_j)),  j in N(i) ∪ {i}
//   h'_i = ELU(sum_j a_ij W h_j),  a_i = softmax(e_i)
// Heads stand side by side in inner layers; the last layer takes their mean.
#pragma once

#include <torch/nn/module.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/formats/bags.h"
#include "data/formats/graph.h"
#include "fovea/attend.h"

namespace fovea::systems::gat {

// The input of the network: which nodes see which, and the features of each node, as words (a few
// of many) or as numbers.
struct GraphInput {
  Graph sees;   // [nodes] x [nodes]
  Graph words;  // [nodes] x [features]: the words of each node; undefined tensors where `values`
                // has the features
  torch::Tensor values;  // [nodes, features]
  int64_t nodes = 0, features = 0;
  // Where ranks hold parts of a graph: `nodes` are this rank's, and this adds the rows of their
  // neighbours, which `sees` counts after them. Empty: the graph is whole.
  std::function<torch::Tensor(const torch::Tensor&)> with_neighbours = {};

  GraphInput to(torch::Device device) const;
};
// Rows of features are divided by their sums (for numbers: of absolute values), as in the paper; a
// row of zeros stays. With a scaling, each column of numbers is standardised instead, because the
// sum of a row has a meaning only for counts.
GraphInput input_of(const data::CitationGraph& graph, const data::Csr& sees,
                    const data::Scaling& scaling = {});
// Of the columns of numbers, over the nodes given.
data::Scaling scaling_of(const data::CitationGraph& graph, const std::vector<int64_t>& nodes);

struct Shape {
  int64_t features = 0, classes = 0;
  int64_t layers = 2, heads = 8, width = 8, output_heads = 1;
  double dropout = 0.6, attention_dropout = 0.6, negative_slope = 0.2;
  bool dynamic = false;  // GATv2: the ranking of neighbours may differ from node to node
  Normaliser normaliser = Softmax{};
};

// True with chance 1 - dropout, each on its own; the seed is drawn from libtorch's generator.
torch::Tensor survivors(int64_t count, double dropout);
// Dropout of numbers, survivors scaled.
torch::Tensor drop(const torch::Tensor& values, double dropout);

// A layer's input after dropout: numbers, or the remaining words of each node.
// Row-normalised words are a uniform attention over the rows of W, and a dropped word is a missing
// edge. So no product with the dense matrix, which is mostly zeros, is needed.
struct Features {
  int64_t nodes = 0, width = 0;
  torch::Tensor values = {};  // [nodes, width], or undefined: words
  Graph words = {};
  torch::Tensor factor = {};  // [nodes, 1], where words were dropped
};
Features features_of(const GraphInput& input, const torch::Tensor& nodes, double dropout);
torch::Tensor product(const Features& features,
                      const torch::Tensor& weight);  // weight [width, out] -> [nodes, out]

// One layer. Parameters are laid out for the engine: values [nodes, heads, width].
class Layer : public torch::nn::Module {
 public:
  Layer(int64_t inputs, int64_t heads, int64_t width, const Shape& shape);

  // What attend is given, for the output and for the pictures. `nodes` undefined: the words of
  // `input`.
  struct Parts {
    torch::Tensor query, key, value;
    Choices choices;
  };
  Parts parts(const GraphInput& input, const torch::Tensor& nodes);
  torch::Tensor forward(const GraphInput& input,
                        const torch::Tensor& nodes);  // [nodes, heads, width]

  int64_t heads() const { return heads_; }

 private:
  const int64_t heads_, width_;
  const double dropout_, attention_dropout_, negative_slope_;
  const bool dynamic_;
  const Normaliser normaliser_;
  torch::Tensor weight_, query_weight_, attention_, bias_;
};

class Model : public torch::nn::Module {
 public:
  explicit Model(const Shape& shape);
  torch::Tensor forward(const GraphInput& input);  // [nodes, classes], before softmax
  // The parts of every layer's attention, in evaluation: what a picture shows.
  std::vector<Layer::Parts> look(const GraphInput& input);

 private:
  torch::Tensor run(const GraphInput& input, std::vector<Layer::Parts>* seen);
  std::vector<std::shared_ptr<Layer>> layers_;
};

}  // namespace fovea::systems::gat
