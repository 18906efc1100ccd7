// One training step of graph attention: ours beside the scatter form on libtorch, in turns,
// and the memory ours takes.
//
//   gat_step [FOLDER | NODES EDGES WORDS CLASSES] [threads=N] [rounds=N]
//
// The peer has the features as a dense matrix and does what libtorch's users do: dropout, product,
// gather, scatter.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "bench/memory.h"
#include "data/generated/graph.h"
#include "systems/gat/model.h"
#include "train/descent/optimiser.h"

namespace fovea::bench {
namespace {

using systems::gat::GraphInput;
using systems::gat::Model;
using systems::gat::Shape;

constexpr double kDropout = 0.6;

struct ScatterLayer : torch::nn::Module {
  ScatterLayer(int64_t inputs, int64_t heads, int64_t width) : heads(heads), width(width) {
    weight = register_parameter("weight", torch::randn({inputs, heads * width}) * 0.1);
    first = register_parameter("first", torch::randn({heads, width}) * 0.1);
    second = register_parameter("second", torch::randn({heads, width}) * 0.1);
    bias = register_parameter("bias", torch::zeros({heads, width}));
  }
  torch::Tensor forward(const torch::Tensor& nodes, const torch::Tensor& rows,
                        const torch::Tensor& columns) {
    const int64_t n = nodes.size(0);
    const torch::Tensor value =
        torch::dropout(nodes, kDropout, true).matmul(weight).view({n, heads, width});
    const torch::Tensor query = (value * first).sum(-1),
                        key = (value * second).sum(-1);  // [nodes, heads]
    const torch::Tensor scores =
        torch::leaky_relu(query.index_select(0, rows) + key.index_select(0, columns), 0.2);
    const torch::Tensor index = rows.unsqueeze(-1).expand_as(scores);
    const torch::Tensor maximum = torch::full({n, heads}, -INFINITY)
                                      .scatter_reduce(0, index, scores.detach(), "amax")
                                      .index_select(0, rows);
    const torch::Tensor powers = (scores - maximum).exp();
    const torch::Tensor sums = torch::zeros({n, heads}).index_add(0, rows, powers);
    const torch::Tensor weights =
        torch::dropout(powers / sums.index_select(0, rows), kDropout, true);
    const torch::Tensor messages = value.index_select(0, columns) * weights.unsqueeze(-1);
    return torch::zeros_like(value).index_add(0, rows, messages) + bias;
  }
  const int64_t heads, width;
  torch::Tensor weight, first, second, bias;
};

struct Scatter : torch::nn::Module {
  explicit Scatter(const Shape& shape) {
    one = register_module("one",
                          std::make_shared<ScatterLayer>(shape.features, shape.heads, shape.width));
    two = register_module("two", std::make_shared<ScatterLayer>(shape.heads * shape.width,
                                                                shape.output_heads, shape.classes));
  }
  std::shared_ptr<ScatterLayer> one, two;
};

torch::Tensor dense_features(const data::CitationGraph& graph) {
  torch::Tensor out = torch::zeros({graph.nodes, graph.features});
  auto* to = out.data_ptr<float>();
  for (int64_t i = 0; i < graph.nodes; ++i)
    for (const int32_t word : data::row_of(graph.words, static_cast<size_t>(i)))
      to[i * graph.features + word] =
          1.0f / static_cast<float>(data::row_of(graph.words, static_cast<size_t>(i)).size());
  return out;
}

double milliseconds(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Parameters with gradients and two moments, the graph and its words, and a tensor for each step of
// the equations: projection, the two halves of the score, the weights of the edges, mixture, its
// ELU, the same with some dropped; the last layer has the logits in place of these two.
double bytes_needed(const GraphInput& input, const Shape& shape, int64_t parameters) {
  const double hidden = static_cast<double>(shape.heads * shape.width),
               out = static_cast<double>(shape.output_heads * shape.classes);
  const double a_node = 4 * hidden + 2.0 * static_cast<double>(shape.heads) + 2 * out +
                        2.0 * static_cast<double>(shape.output_heads) +
                        static_cast<double>(shape.classes);
  const double edges = static_cast<double>(input.sees.columns.numel());
  const double an_edge = 1 + static_cast<double>(shape.heads + shape.output_heads);
  const double words = static_cast<double>(input.words.columns.numel() + 2 * input.nodes);
  return 4.0 * (4.0 * static_cast<double>(parameters) + static_cast<double>(input.nodes) * a_node +
                edges * an_edge + words);
}

void run(const data::CitationGraph& graph, int rounds) {
  const data::Csr sees = data::symmetric_with_loops(graph.nodes, graph.edges);
  const GraphInput input = systems::gat::input_of(graph, sees);
  const Shape shape{.features = graph.features,
                    .classes = graph.classes,
                    .dropout = kDropout,
                    .attention_dropout = kDropout};
  const train::Recipe recipe{.rate = 0.005, .weight_decay = 5e-4};
  const torch::Tensor items = torch::tensor(at::ArrayRef<int64_t>(graph.splits.train));
  const torch::Tensor labels =
      torch::tensor(at::ArrayRef<int64_t>(graph.labels)).index_select(0, items);
  const auto learn = [&](train::Optimiser& optimiser, const auto& forward) {
    optimiser.zero_grad();
    torch::nn::functional::cross_entropy(forward().index_select(0, items), labels).backward();
    optimiser.step(1);
  };

  Model model(shape);
  model.train();
  int64_t parameters = 0;
  for (const torch::Tensor& p : model.parameters()) parameters += p.numel();
  train::Optimiser ours({{.parameters = model.parameters()}}, recipe);
  const auto our_step = [&] { learn(ours, [&] { return model.forward(input); }); };
  const auto peak = peak_extra_memory([&] {
    for (int i = 0; i < 3; ++i) our_step();
  });
  const double needed = bytes_needed(input, shape, parameters);

  Scatter scatter(shape);
  const torch::Tensor dense = dense_features(graph),
                      rows =
                          torch::repeat_interleave(torch::arange(graph.nodes),
                                                   input.sees.row_offsets.diff().to(torch::kInt64)),
                      columns = input.sees.columns.to(torch::kInt64);
  train::Optimiser theirs({{.parameters = scatter.parameters()}}, recipe);
  const auto their_step = [&] {
    learn(theirs, [&] {
      return scatter.two
          ->forward(torch::elu(scatter.one->forward(dense, rows, columns).flatten(1)), rows,
                    columns)
          .mean(1);
    });
  };
  std::vector<double> own, other, ratio;
  for (int i = 0; i < rounds; ++i) {
    own.push_back(milliseconds(our_step));
    other.push_back(milliseconds(their_step));
    ratio.push_back(other.back() / own.back());
  }
  fmt::print(
      "{{\"nodes\": {}, \"edges\": {}, \"threads\": {}, \"ours_ms\": {:.2f}, \"scatter_ms\": "
      "{:.2f}, \"ratio\": {:.2f}, \"peak_mib\": {:.1f}, \"needed_mib\": {:.1f}, "
      "\"peak_over_needed\": {:.2f}}}\n",
      graph.nodes, graph.edges.size(), at::get_num_threads(), median(own), median(other),
      median(ratio), peak ? static_cast<double>(*peak) / (1 << 20) : -1.0, needed / (1 << 20),
      peak ? static_cast<double>(*peak) / needed : -1.0);
}

}  // namespace
}  // namespace fovea::bench

int main(int count, char** arguments) {
  using namespace fovea;
  std::vector<std::string> plain;
  int rounds = 15;
  for (int i = 1; i < count; ++i) {
    const std::string word = arguments[i];
    if (word.starts_with("threads="))
      at::set_num_threads(std::stoi(word.substr(8)));
    else if (word.starts_with("rounds="))
      rounds = std::stoi(word.substr(7));
    else
      plain.push_back(word);
  }
  try {
    if (plain.size() == 1)
      bench::run(data::read_graph(plain[0]), rounds);
    else if (plain.size() == 4)
      bench::run(data::generate_graph({.nodes = std::stoll(plain[0]),
                                       .edges = std::stoll(plain[1]),
                                       .features = std::stoll(plain[2]),
                                       .classes = std::stoll(plain[3])})
                     .graph,
                 rounds);
    else
      throw InvalidArgument(
          "usage: gat_step FOLDER | NODES EDGES WORDS CLASSES [threads=N] [rounds=N]");
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
