#include "systems/mil/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "explain/capture.h"

namespace fovea::systems::mil {
namespace {

constexpr size_t kMostInstances = 200;  // shown of a bag, besides its key instances

explain::Picture picture_of(const float* values, int64_t side) {
  explain::Picture out{static_cast<int>(side), static_cast<int>(side), 1, {}};
  for (int64_t i = 0; i < side * side; ++i) out.pixels.push_back(data::pixel_of(values[i]));
  return out;
}

// The instances of a bag to show, in their order: those with the largest weights, and all key
// instances.
std::vector<size_t> shown_of(const ShownBag& bag, const std::vector<float>& weights) {
  std::vector<size_t> out(weights.size());
  std::iota(out.begin(), out.end(), size_t{0});
  if (out.size() <= kMostInstances) return out;
  std::stable_sort(out.begin(), out.end(),
                   [&](size_t a, size_t b) { return weights[a] > weights[b]; });
  out.resize(kMostInstances);
  for (size_t i = 0; i < bag.key_instances.size(); ++i)
    if (bag.key_instances[i]) out.push_back(i);
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void label_as(explain::Explanation& out, Model& model, const data::Packed& bag,
              const std::string& pool) {
  if (model.attends()) {
    const Model::Parts parts = model.parts(model.embed(bag.values), bag.offsets);
    explain::label(out, parts.choices, {}, parts.key.size(2));
  } else {
    out.score = pool.ends_with("max") ? "the coordinate itself" : "constant";
    out.normaliser = pool.ends_with("max") ? "hard, one head a coordinate" : "uniform";
    out.structure = "bag";
    out.scale = "1";
  }
}

// The bag's pictures in a square, each multiplied by its weight over the largest weight: bright
// pictures were looked at.
explain::Explanation mosaic(const explain::Explanation& strip, const ShownBag& bag,
                            const std::vector<float>& weights, int64_t side, int64_t width) {
  const std::vector<size_t> shown = shown_of(bag, weights);
  const auto count = static_cast<int64_t>(shown.size()),
             across = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(count))));
  const int64_t down = (count + across - 1) / across;
  explain::Explanation out;
  out.title = fmt::format("{}: what the label rests on", bag.name);
  out.view = explain::View::kImage;
  out.score = strip.score;
  out.normaliser = strip.normaliser;
  out.structure = strip.structure;
  out.scale = strip.scale;
  out.query_label = "bag";
  out.key_label = "instance";
  out.queries.emplace_back().text = bag.name;
  out.picture =
      explain::Picture{static_cast<int>(across * side), static_cast<int>(down * side), 1,
                       std::vector<uint8_t>(static_cast<size_t>(across * side * down * side))};
  const float top = std::max(1e-12f, *std::max_element(weights.begin(), weights.end()));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t x0 = i % across * side, y0 = i / across * side;
    const size_t instance = shown[static_cast<size_t>(i)];
    const explain::Picture patch =
        picture_of(bag.features.data() + static_cast<int64_t>(instance) * width, side);
    for (int64_t y = 0; y < side; ++y)
      for (int64_t x = 0; x < side; ++x)
        out.picture->pixels[static_cast<size_t>((y0 + y) * across * side + x0 + x)] =
            static_cast<uint8_t>(
                static_cast<float>(patch.pixels[static_cast<size_t>(y * side + x)]) *
                weights[instance] / top);
    explain::Item& item = out.keys.emplace_back();
    item.text = bag.instance_name(instance);
    const double w = static_cast<double>(across), h = static_cast<double>(down);
    item.position = {static_cast<double>(i % across) / w, static_cast<double>(i / across) / h,
                     1 / w, 1 / h};
  }
  auto& dense = out.maps.emplace_back().dense;
  for (const size_t instance : shown) dense.push_back(weights[instance]);
  if (shown.size() < weights.size())
    out.notes.push_back(fmt::format("{} of {} instances: the heaviest and the key instances.",
                                    shown.size(), weights.size()));
  out.notes.push_back(
      "Each patch is multiplied by its weight over the bag's largest, for display only.");
  return out;
}

}  // namespace

std::string ShownBag::instance_name(size_t instance) const {
  return files.empty() ? fmt::format("instance {}", instance + 1)
                       : std::filesystem::path(files[instance]).filename().string();
}

std::vector<explain::Explanation> pictures(Model& model, const std::vector<ShownBag>& bags,
                                           int64_t width, int64_t side, const std::string& pool,
                                           torch::Device device) {
  explain::Explanation out;
  out.title = "Which instances the label rests on";
  out.view = explain::View::kBag;
  out.query_label = "bag";
  out.key_label = "instance";
  std::vector<explain::Explanation> all;
  std::vector<std::vector<float>> weights;
  std::vector<std::vector<size_t>> shown;
  std::optional<size_t> best;
  bool truth = false;
  for (const ShownBag& bag : bags) {
    const std::vector<std::vector<float>> one{bag.features};
    const data::Packed packed = data::pack_features(one, width, std::vector<int64_t>{0}).to(device);
    if (out.score.empty()) label_as(out, model, packed, pool);
    const double p = model.forward(packed).softmax(1)[0][1].item<double>();
    weights.push_back(to_floats(model.weights_of(packed)));
    const auto group = static_cast<int>(out.groups.size());
    out.groups.push_back({.name = bag.name});
    explain::Item& query = out.queries.emplace_back();
    query.text = fmt::format("{}{}: p(positive) = {:.3f}", bag.name,
                             bag.label ? *bag.label ? ", positive" : ", negative" : "", p);
    query.group = group;
    shown.push_back(shown_of(bag, weights.back()));
    const size_t count = shown.back().size();
    const bool some = count < weights.back().size();
    if (some)
      query.text +=
          fmt::format(", {} of {} instances: the heaviest{}", count, weights.back().size(),
                      bag.key_instances.empty() ? "" : " and the key instances");
    for (const size_t i : shown.back()) {
      explain::Item& item = out.keys.emplace_back();
      item.group = group;
      if (side > 0)
        item.picture = picture_of(bag.features.data() + static_cast<int64_t>(i) * width, side);
      if (side == 0 || some)
        item.text = i < bag.telling.size() ? fmt::format("{}: {}", i + 1, bag.telling[i])
                                           : fmt::format("{}", i + 1);
    }
    truth = truth || !bag.key_instances.empty();
    if (!best && p > 0.5 && count > 1) best = weights.size() - 1;
  }
  // Each bag's row over all instances shown: zeros outside the bag.
  auto& dense = out.maps.emplace_back().dense;
  dense.assign(out.queries.size() * out.keys.size(), 0);
  if (truth) out.truth = explain::Truth{.label = "key instance"};
  size_t key = 0;
  for (size_t i = 0; i < bags.size(); ++i)
    for (const size_t k : shown[i]) {
      dense[i * out.keys.size() + key] = weights[i][k];
      if (!bags[i].key_instances.empty() && bags[i].key_instances[k])
        out.truth->sure.push_back({static_cast<int32_t>(i), static_cast<int32_t>(key)});
      ++key;
    }
  out.notes.push_back(
      "A negative bag has nothing to find: its weights say little, and are shown all the same.");
  if (!model.attends())
    out.notes.push_back("A baseline: what its pooling takes from each instance.");
  if (out.score.empty()) return {};
  all.push_back(out);
  if (side > 0 && best) all.push_back(mosaic(out, bags[*best], weights[*best], side, width));
  return all;
}

}  // namespace fovea::systems::mil
