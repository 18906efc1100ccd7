#include "systems/deep_sets/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <numeric>

#include "data/random.h"
#include "systems/deep_sets/shuffle.h"
#include "systems/pooling/pooling.h"

namespace fovea::systems::deep_sets {
namespace {

constexpr size_t kDrawn = 24;  // clouds on a page

explain::Explanation of_sums() {
  explain::Explanation out;
  out.score = "constant";
  out.normaliser = "none (sum)";
  out.structure = "set";
  out.scale = "1";
  return out;
}

explain::Explanation of_maxima() {
  explain::Explanation out;
  out.score = "the coordinate itself";
  out.normaliser = "hard, one head a coordinate";
  out.structure = "set";
  out.scale = "1";
  return out;
}

explain::Picture picture_of(const data::Digits& digits, int64_t which) {
  const auto* from = digits.pixels.data() + which * digits.height * digits.width;
  return {static_cast<int>(digits.width),
          static_cast<int>(digits.height),
          1,
          {from, from + digits.height * digits.width}};
}

std::vector<double> from_the_side(const torch::Tensor& point) {
  const double x = point[0].item<double>(), y = point[1].item<double>(),
               z = point[2].item<double>();
  return {x + y / 2, z + y / 4};
}

explain::Plot plot_of(const torch::Tensor& points, const torch::Tensor& share,
                      const std::string& title) {
  explain::Plot plot{.title = title, .x_label = "x + y/2", .y_label = "z + y/4"};
  explain::Curve winners{.kind = explain::Curve::Kind::kPoints, .label = "wins coordinates"},
      others{.kind = explain::Curve::Kind::kPoints, .label = "wins none"};
  for (int64_t i = 0; i < points.size(0); ++i) {
    const double won = share[i].item<double>();
    const std::vector<double> place = from_the_side(points[i]);
    explain::Curve& curve = won > 0 ? winners : others;
    curve.x.push_back(place[0]);
    curve.y.push_back(place[1]);
    curve.names.push_back(fmt::format("{:.1f} % of the coordinates", 100 * won));
  }
  for (const explain::Curve* curve : {&winners, &others})
    if (!curve->x.empty()) plot.curves.push_back(*curve);
  return plot;
}

// The probability is that of the answer, which may be wrong.
std::string title_of(const ShownCloud& shown, const torch::Tensor& p,
                     const std::vector<std::string>& classes) {
  const auto answer = static_cast<size_t>(p.argmax().item<int64_t>());
  return fmt::format("{}:{} p = {:.3f}", shown.name,
                     shown.truth == answer ? "" : fmt::format(" taken for {},", classes[answer]),
                     p.max().item<double>());
}

// The cloud with its points in another order.
data::Packed shuffled(const data::Packed& cloud, data::Random& random) {
  std::vector<int64_t> order(static_cast<size_t>(cloud.values.size(0)));
  std::iota(order.begin(), order.end(), 0);
  random.shuffle(order);
  return {cloud.values.index_select(
              0, torch::tensor(at::ArrayRef<int64_t>(order)).to(cloud.values.device())),
          cloud.offsets};
}

// Without `shuffle` if the cloud is too large for a page.
explain::Explanation shuffled_points(const data::Packed& cloud, CloudClassifier& model,
                                     const std::vector<std::string>& classes) {
  explain::Explanation out = of_maxima();
  out.key_label = "point";
  const torch::Tensor points = cloud.values.cpu();
  for (int64_t i = 0; i < points.size(0); ++i)
    out.keys.push_back({.text = std::to_string(i + 1), .position = from_the_side(points[i])});
  add_shuffle_test(out, model, cloud, classes);
  return out;
}

}  // namespace

explain::Explanation accuracy_against_size(const Metrics& found, std::span<const int64_t> sizes,
                                           int64_t largest) {
  explain::Explanation out = of_sums();
  out.title = "Sets larger than any it learned from";
  out.view = explain::View::kCurve;
  explain::Plot plot{.title = "Exact sums against the size of the set",
                     .x_label = "digits in the set",
                     .y_label = "share of sums that are exact"};
  explain::Curve own{.label = "Deep Sets: ρ(sum φ(x))"}, gru{.label = "GRU over the same φ(x)"};
  for (const int64_t size : sizes) {
    for (auto* curve : {&own, &gru}) curve->x.push_back(static_cast<double>(size));
    own.y.push_back(found.at(fmt::format("exact_{}", size)));
    gru.y.push_back(found.at(fmt::format("gru_exact_{}", size)));
  }
  plot.curves = {own, gru};
  plot.markers.push_back({.label = "largest set learned from", .x = static_cast<double>(largest)});
  out.plots.push_back(plot);
  out.outcome = fmt::format("exact at 10: {:.1f} %, at 50: {:.1f} %; GRU {:.1f} %, {:.1f} %",
                            100 * found.at("exact_10"), 100 * found.at("exact_50"),
                            100 * found.at("gru_exact_10"), 100 * found.at("gru_exact_50"));
  return out;
}

explain::Explanation what_each_adds(const ShownDigits& set, DigitSum& model) {
  explain::Explanation out = of_sums();
  out.title = "What each element adds";
  out.view = explain::View::kBag;
  out.normaliser = "none: what each adds to the answer";
  out.query_label = "set";
  out.key_label = "digit";
  const torch::Tensor whole = whole_set(set.phi);
  out.queries.emplace_back().text = fmt::format("{}: Deep Sets {:.2f}, GRU {:.2f}", set.name,
                                                model.sums(set.phi, whole)[0].item<double>(),
                                                model.gru_sums(set.phi, whole)[0].item<double>());
  out.maps.emplace_back().dense = to_floats(model.contributions(set.phi));
  for (const int64_t member : set.members) {
    explain::Item& item = out.keys.emplace_back();
    // The name of a digit: its label if it has one, otherwise its position.
    item.text = std::to_string(set.digits.labels.empty()
                                   ? static_cast<int64_t>(out.keys.size())
                                   : int64_t{set.digits.labels[static_cast<size_t>(member)]});
    item.picture = picture_of(set.digits, member);
  }
  if (model.rho_is_linear())
    out.notes.push_back("ρ is linear: the numbers beneath the digits add up to the answer.");
  return out;
}

explain::Explanation shuffled_digits(const explain::Explanation& set, const std::string& outcome,
                                     DigitSum& model, const torch::Tensor& phi) {
  explain::Explanation out = of_sums();
  out.outcome = outcome;
  out.key_label = set.key_label;
  out.keys = set.keys;
  add_shuffle_test(out, model, phi);
  return out;
}

std::vector<explain::Explanation> points_that_decide(std::span<const ShownCloud> clouds,
                                                     CloudClassifier& model,
                                                     const std::vector<std::string>& classes) {
  explain::Explanation out = of_maxima();
  out.title = "The points that decide";
  out.view = explain::View::kCurve;
  out.notes.push_back(
      "A point counts by the share of the last layer's coordinates whose largest value is its "
      "own.");
  if (clouds.size() > kDrawn)
    out.notes.push_back(fmt::format("The first {} of {} clouds are drawn.", kDrawn, clouds.size()));
  explain::Table changes{.title = "Shuffle test: the largest change of any output",
                         .columns = {"cloud", "change"}};
  data::Random random(9);
  for (const ShownCloud& shown : clouds.first(std::min(clouds.size(), kDrawn))) {
    const data::Packed& cloud = shown.points;
    const torch::Tensor logits = model.forward(cloud), p = logits.softmax(1)[0],
                        share = pooling::pool_weights("max", model.points(cloud).cpu());
    out.plots.push_back(plot_of(cloud.values.cpu(), share, title_of(shown, p, classes)));
    const auto change =
        (model.forward(shuffled(cloud, random)) - logits).abs().max().item<double>();
    changes.rows.push_back({shown.name, change > 0 ? fmt::format("{:.1e}", change) : "0"});
  }
  // The table is for readers without scripts, beside the test that it replaces.
  explain::Explanation live = shuffled_points(clouds.front().points, model, classes);
  (live.shuffle ? live : out).tables.push_back(changes);
  if (!live.shuffle) return {out};
  return {out, live};
}

}  // namespace fovea::systems::deep_sets
