#include "systems/pooling/view.h"

#include <fmt/format.h>

#include "train/task.h"

namespace fovea::systems::pooling {
namespace {

explain::Curve points(const char* label) {
  return {.kind = explain::Curve::Kind::kPoints, .label = label};
}

std::string numbers(const torch::Tensor& item) {
  std::string out = fmt::format("{:.2f}", item[0].item<double>());
  if (item.size(0) > 1)
    out += fmt::format(", {:.2f}{}", item[1].item<double>(), item.size(0) > 2 ? ", …" : "");
  return out;
}

// The items as points, those that attention reads most apart; and what a mean and a maximum keep of
// all of them.
explain::Plot plane(const torch::Tensor& items, const std::vector<float>& attention) {
  explain::Plot out;
  out.title = "The bag in the plane: what is left of it";
  out.x_label = "first number";
  out.y_label = "second number";
  const auto even = 1 / static_cast<float>(items.size(0));
  explain::Curve read = points("read more than evenly by attention"), other = points("other items");
  explain::Curve mean = points("mean of all"), most = points("maximum of each number");
  const auto add = [](explain::Curve& curve, const torch::Tensor& at, const std::string& name) {
    curve.x.push_back(at[0].item<double>());
    curve.y.push_back(at[1].item<double>());
    curve.names.push_back(name);
  };
  add(mean, items.mean(0), "mean");
  add(most, std::get<0>(items.max(0)), "maximum");
  for (int64_t i = 0; i < items.size(0); ++i)
    add(attention[static_cast<size_t>(i)] > even ? read : other, items[i], std::to_string(i + 1));
  out.curves = {mean, most, read};
  if (!other.x.empty()) out.curves.push_back(other);
  if (read.x.empty()) out.curves.erase(out.curves.begin() + 2);
  return out;
}

}  // namespace

explain::Explanation picture(Model& model, const Shown& shown) {
  const data::Packed& bag = shown.bag;
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
    out.keys.emplace_back().text = fmt::format(
        "{}: {}", i + 1,
        shown.items.empty() ? numbers(bag.values[i]) : shown.items[static_cast<size_t>(i)]);
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
  if (inputs == 2 && shown.items.empty())
    out.plots.push_back(plane(bag.values.cpu(), out.maps.back().dense));
  const double p = model.forward(bag).softmax(1)[0][1].item<double>();
  out.outcome = fmt::format("{}p(1) = {:.3f}", shown.label, p);
  if (model.how == "max")
    out.notes.push_back("A weight is the share of coordinates whose largest value is this item's.");
  return out;
}

}  // namespace fovea::systems::pooling
