#include "systems/pooling/view.h"

#include <fmt/format.h>

#include "train/task.h"

namespace fovea::systems::pooling {

explain::Explanation picture(Model& model, const data::Packed& bag, const std::string& label) {
  explain::Explanation out;
  out.title = fmt::format("What {} pooling takes from a bag", model.how);
  out.view = explain::View::kBag;
  out.score = model.how == "attention" ? "scaled dot with a learned query"
              : model.how == "context" ? "scaled dot with a query from the bag's mean"
              : model.how == "max"     ? "the coordinate itself"
                                       : "constant";
  out.normaliser = model.how == "sum"    ? "none"
                   : model.how == "mean" ? "uniform"
                   : model.how == "max"  ? "hard, one head a coordinate"
                                         : "softmax";
  out.structure = "bag";
  out.scale = model.attends() ? fmt::format("1/√{}", model.rho->options.in_features()) : "1";
  out.query_label = "pooling";
  out.key_label = "item of the bag";
  out.heads = {"weights", {"this run: " + model.how, "even (uniform)", "attention (softmax)"}};
  const int64_t inputs = bag.values.size(1);
  const torch::Tensor phi = model.phi(bag.values).cpu();
  out.queries.emplace_back().text = fmt::format("bag of {}", phi.size(0));
  for (int64_t i = 0; i < phi.size(0); ++i) {
    std::string text = fmt::format("{:.2f}", bag.values[i][0].item<double>());
    if (inputs > 1)
      text += fmt::format(", {:.2f}{}", bag.values[i][1].item<double>(), inputs > 2 ? ", …" : "");
    out.keys.emplace_back().text = text;
  }
  torch::Tensor asked = model.asked(model.phi(bag.values), bag.offsets);
  if (asked.defined()) asked = asked.cpu();
  out.maps.emplace_back().dense =
      to_floats(pool_weights(model.attends() ? "attention" : model.how, phi, asked));
  const auto beside = [&](int head, const char* how, const torch::Tensor& query) {
    auto& map = out.maps.emplace_back();
    map.head = head;
    map.dense = to_floats(pool_weights(how, phi, query));
  };
  beside(1, "mean", {});
  // A run without a learned query gets the direction towards label 1 as its query.
  const torch::Tensor direction = (model.rho->weight[1] - model.rho->weight[0]).cpu();
  beside(2, "attention", asked.defined() ? asked : direction);
  if (!asked.defined())
    out.notes.push_back(
        "Beside it, attention to the same items: the query is the direction in which the "
        "classifier finds label 1, so the weights show which items speak for it.");
  const double p = model.forward(bag).softmax(1)[0][1].item<double>();
  out.outcome = fmt::format("{}p(1) = {:.3f}", label, p);
  if (model.how == "max")
    out.notes.push_back("A weight is the share of coordinates whose largest value is this item's.");
  return out;
}

}  // namespace fovea::systems::pooling
