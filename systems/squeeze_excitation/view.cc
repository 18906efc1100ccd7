#include "systems/squeeze_excitation/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>

#include "explain/bars.h"

namespace fovea::systems::squeeze_excitation {
namespace {

constexpr int64_t kMostChannels = 16;  // drawn as maps

explain::Explanation framed(const std::string& title) {
  explain::Explanation out;
  out.title = title;
  out.score = "two-layer net of all channels' means";
  out.normaliser = "sigmoid";
  out.structure = "each channel its own";
  out.scale = "1";
  out.key_label = "channel";
  out.notes.push_back("Each gate is between 0 and 1 on its own: they do not sum to 1.");
  return out;
}

// The slider chooses the group.
explain::Plot gate_bars(const std::string& depth, const std::vector<PictureGroup>& groups,
                        const std::vector<std::vector<float>>& gates) {
  std::vector<explain::BarRow> rows;
  for (size_t group = 0; group < groups.size(); ++group)
    rows.push_back({groups[group].name, {gates[group].begin(), gates[group].end()}});
  return explain::bars({.title = "Gates, " + depth, .x_label = "channel", .y_label = "gate"},
                       "class, in the order of the rows", rows);
}

}  // namespace

std::vector<explain::Explanation> gates_by_group(Model& model,
                                                 const std::vector<PictureGroup>& groups) {
  // [place][group][channel]
  std::vector<std::string> names;
  std::vector<std::vector<std::vector<float>>> mean;
  for (const PictureGroup& group : groups) {
    const std::vector<Gated> places = model.look(group.pixels);
    names.resize(places.size());
    mean.resize(places.size());
    for (size_t i = 0; i < places.size(); ++i) {
      names[i] = places[i].name;
      mean[i].push_back(to_floats(places[i].gates.mean(0)));
    }
  }
  // Layers with the same number of channels share a picture: a map for each.
  std::vector<explain::Explanation> out;
  for (size_t i = 0; i < names.size(); ++i) {
    const size_t channels = mean[i].front().size();
    const bool picture = names[i] == "picture";
    if (out.empty() || out.back().keys.size() != channels || (i > 0 && names[i - 1] == "picture")) {
      explain::Explanation& made = out.emplace_back(
          framed(picture ? "Gates of a picture's own channels" : "Gates by class and depth"));
      made.view = explain::View::kMatrix;
      made.query_label = "mean of";
      made.layers = {"depth", {}};
      for (const PictureGroup& group : groups) made.queries.emplace_back().text = group.name;
      for (size_t c = 0; c < channels; ++c) made.keys.emplace_back().text = std::to_string(c + 1);
    }
    explain::Map& map = out.back().maps.emplace_back();
    map.layer = static_cast<int>(out.back().layers.names.size());
    out.back().layers.names.push_back(names[i]);
    for (const auto& row : mean[i]) map.dense.insert(map.dense.end(), row.begin(), row.end());
    out.back().plots.push_back(gate_bars(names[i], groups, mean[i]));
  }
  return out;
}

explain::Explanation before_and_after(const Gated& place, const std::string& name,
                                      const std::string& outcome, int64_t useful) {
  explain::Explanation out =
      framed(fmt::format("Channels before and after their gates{}: {}",
                         name.starts_with(place.name) ? "" : ", " + place.name, name));
  out.view = explain::View::kBag, out.outcome = outcome;
  out.query_label = "map";
  const torch::Tensor gates = place.gates[0].cpu(), maps = place.before[0].cpu();
  const int64_t channels = gates.size(0), drawn = std::min(channels, kMostChannels);
  torch::Tensor order = gates.argsort(/*dim=*/0, /*descending=*/true).narrow(0, 0, drawn);
  order = std::get<0>(order.sort());
  if (drawn < channels)
    out.notes.push_back(
        fmt::format("{} of {} channels: those with the largest gates.", drawn, channels));
  const double low = maps.min().item<double>(), high = maps.max().item<double>();
  out.maps.emplace_back().dense.assign(static_cast<size_t>(4 * drawn), 0);
  if (useful >= 0) out.truth = explain::Truth{.label = "the channel that counts"};
  for (int64_t row = 0; row < 2; ++row) {
    out.groups.push_back({.name = row ? "after" : "before"});
    explain::Item& query = out.queries.emplace_back();
    query.text = row ? "after: times the gate" : "before";
    query.group = static_cast<int>(row);
    for (int64_t i = 0; i < drawn; ++i) {
      const auto channel = order[i].item<int64_t>();
      const double gate = gates[channel].item<double>();
      explain::Item& item = out.keys.emplace_back();
      item.group = static_cast<int>(row);
      item.text = std::to_string(channel + 1);
      // Zero is the darkest value: a gate moves a map towards it.
      item.picture = grey(low + (maps[channel] - low) * (row ? gate : 1.0), low, high);
      out.maps[0].dense[static_cast<size_t>(row * 2 * drawn + row * drawn + i)] =
          static_cast<float>(gate);
      if (channel == useful)
        out.truth->sure.push_back(
            {static_cast<int32_t>(row), static_cast<int32_t>(row * drawn + i)});
    }
  }
  return out;
}

explain::Explanation without_gates(const std::string& outcome) {
  explain::Explanation out;
  out.title = "A network without gates";
  out.view = explain::View::kCurve;
  out.score = out.normaliser = out.structure = "none";
  out.scale = "1";
  out.outcome = outcome;
  out.notes.push_back("gate=off: nothing to look at; it is there to compare with.");
  return out;
}

}  // namespace fovea::systems::squeeze_excitation
