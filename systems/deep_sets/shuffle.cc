#include "systems/deep_sets/shuffle.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <numeric>

#include "data/random.h"
#include "train/task.h"

namespace fovea::systems::deep_sets {
namespace {

using Parameters = torch::OrderedDict<std::string, torch::Tensor>;

explain::Layer layer_of(const Parameters& parameters, const std::string& name,
                        explain::Layer::Activation activation = explain::Layer::Activation::kNone) {
  const torch::Tensor& weight = parameters[name + ".weight"];
  const torch::Tensor* bias = parameters.find(name + ".bias");
  return {to_floats(weight),
          bias ? to_floats(*bias) : std::vector<float>(static_cast<size_t>(weight.size(0))),
          activation};
}

// rho1 exists if ρ is not linear.
explain::Reader sum_reader(const Parameters& parameters) {
  explain::Reader reader{.label = "Deep Sets", .kind = explain::Reader::Kind::kSum};
  reader.shift = 1;  // as DigitSum::sums: counted from nothing
  if (parameters.contains("rho1.weight"))
    reader.layers.push_back(layer_of(parameters, "rho1", explain::Layer::Activation::kRelu));
  reader.layers.push_back(layer_of(parameters, "rho2"));
  return reader;
}

explain::Reader gru_reader(const Parameters& parameters) {
  const auto part = [&](const char* name) {
    return to_floats(parameters[fmt::format("gru.rnn.{}_l0", name)]);
  };
  return {
      .label = "GRU",
      .kind = explain::Reader::Kind::kGru,
      .gru = explain::Gru{part("weight_ih"), part("weight_hh"), part("bias_ih"), part("bias_hh")},
      .layers = {layer_of(parameters, "read")}};
}

size_t bytes_of(const explain::Gru& gru) {
  return sizeof(float) * (gru.input_weight.size() + gru.hidden_weight.size() +
                          gru.input_bias.size() + gru.hidden_bias.size());
}

// The members in the given order, then in several random orders.
std::vector<std::vector<int>> drawn_orders(size_t members, int count, uint64_t seed) {
  std::vector<int> order(members);
  std::iota(order.begin(), order.end(), 0);
  data::Random random(seed);
  std::vector<std::vector<int>> out;
  for (int i = 0; i < count; ++i) {
    out.push_back(order);
    random.shuffle(order);
  }
  return out;
}

struct Answers {
  double own, gru;
};

// Both models on a set in one order. One order at a time: the rows of a larger product are not all
// rounded in the same way, and the table must show the effect of the order alone.
Answers answers_of(DigitSum& model, const torch::Tensor& features, const std::vector<int>& order) {
  const torch::Tensor members = features.index_select(
      0, torch::tensor(at::ArrayRef<int>(order), torch::kInt64).to(features.device()));
  const torch::Tensor offsets = whole_set(members);
  return {model.sums(members, offsets).item<double>(),
          model.gru_sums(members, offsets).item<double>()};
}

explain::Table still_table(const explain::Explanation& out, DigitSum& model,
                           const torch::Tensor& features) {
  explain::Table table{.title = "Shuffle test: the same set in five orders",
                       .columns = {"order", "Deep Sets", "GRU"}};
  for (const auto& order : drawn_orders(out.keys.size(), 5, 5)) {
    std::string names;
    for (const int member : order) names += out.keys[static_cast<size_t>(member)].text + " ";
    const auto [own, gru] = answers_of(model, features, order);
    // The products after the sum may differ in the last digit of a float, depending on the
    // alignment of their operands.
    table.rows.push_back({names, fmt::format("{:.4f}", own), fmt::format("{:.4f}", gru)});
  }
  return table;
}

}  // namespace

void add_shuffle_test(explain::Explanation& out, DigitSum& model, const torch::Tensor& features) {
  const Parameters parameters = model.named_parameters();
  explain::Shuffle shuffle{.answer = "sum", .width = static_cast<int>(features.size(1))};
  shuffle.vectors = to_floats(features);
  explain::Reader own = sum_reader(parameters), gru = gru_reader(parameters);
  if (bytes_of(*gru.gru) > kMostBytes) {
    shuffle.orders = drawn_orders(out.keys.size(), kDrawnOrders, 6);
    gru = {.label = gru.label, .kind = explain::Reader::Kind::kDrawn};
    for (const auto& order : shuffle.orders)
      gru.answers.push_back(answers_of(model, features, order).gru);
  }
  const Answers given = answers_of(model, features, drawn_orders(out.keys.size(), 1, 0)[0]);
  own.given = given.own;
  gru.given = given.gru;
  shuffle.readers = {own, gru};
  out.title = "Shuffle the set";
  out.view = explain::View::kShuffle;
  out.shuffle = shuffle;
  out.tables.push_back(still_table(out, model, features));
  out.notes.push_back(
      "φ(x) of each digit is written into this page; the sum, ρ and, where it is small enough, the "
      "GRU are worked out here, at each shuffle. Fovea sums in double, so that the order changes "
      "nothing that a float "
      "can show; added up in float32, the last digits wander.");
}

void add_shuffle_test(explain::Explanation& out, CloudClassifier& model, const data::Packed& cloud,
                      const std::vector<std::string>& classes) {
  const torch::Tensor vectors = model.points(cloud);
  if (static_cast<size_t>(vectors.numel()) * sizeof(float) > kMostBytes) return;
  const torch::Tensor p = model.forward(cloud).softmax(1)[0];
  const auto best = p.argmax().item<int64_t>();
  const std::string& name = classes[static_cast<size_t>(best)];
  const Parameters parameters = model.named_parameters();
  explain::Shuffle shuffle{.answer = fmt::format("p of “{}”", name),
                           .width = static_cast<int>(vectors.size(1))};
  shuffle.vectors = to_floats(vectors);
  shuffle.chosen = static_cast<int>(best);
  shuffle.readers.push_back(
      {.label = "Deep Sets",
       .kind = explain::Reader::Kind::kMax,
       .layers = {layer_of(parameters, "hidden", explain::Layer::Activation::kTanh),
                  layer_of(parameters, "out")},
       .given = p[best].item<double>()});
  out.title = "Shuffle the points";
  out.view = explain::View::kShuffle;
  out.outcome = fmt::format("{}, p = {:.4f}", name, p[best].item<double>());
  out.shuffle = shuffle;
  out.notes.push_back(
      "The line goes through the points in the order in which they are read. What the three "
      "equivariant layers gave each point is written into this page; the maximum and the two "
      "layers after it are worked out here, at each shuffle.");
}

}  // namespace fovea::systems::deep_sets
