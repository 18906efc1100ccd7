#include "systems/set_outlier/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "data/digits.h"

namespace fovea::systems::set_outlier {
namespace {

std::string shown_name(const std::string& member) {
  return std::filesystem::path(member).filename().string();
}

explain::Picture picture_of(const float* values, int64_t side) {
  explain::Picture out{static_cast<int>(side), static_cast<int>(side), 1, {}};
  for (int64_t i = 0; i < side * side; ++i) out.pixels.push_back(data::pixel_of(values[i]));
  return out;
}

std::string summary_of(const ShownSet& set) {
  const auto best =
      static_cast<size_t>(std::max_element(set.share.begin(), set.share.end()) - set.share.begin());
  return set.odd ? fmt::format("{}: {}, the odd one has a share of {:.2f}", set.name,
                               best == *set.odd ? "found" : "missed", set.share[*set.odd])
                 : fmt::format("{}: {}, with a share of {:.2f}", set.name,
                               shown_name(set.members[best]), set.share[best]);
}

}  // namespace

explain::Explanation odd_ones(std::span<const ShownSet> sets, int64_t side) {
  explain::Explanation out;
  out.title = "Which member does not belong";
  out.view = explain::View::kBag;
  out.score = "equivariant network";
  out.normaliser = "softmax over the members";
  out.structure = "set";
  out.scale = "1";
  out.query_label = "set";
  out.key_label = "member";
  size_t members = 0;
  for (const ShownSet& set : sets) members += set.members.size();
  auto& dense = out.maps.emplace_back().dense;
  dense.assign(sets.size() * members, 0);
  for (size_t i = 0; i < sets.size(); ++i) {
    const ShownSet& set = sets[i];
    const auto group = static_cast<int>(i);
    out.groups.push_back({.name = set.name});
    explain::Item& query = out.queries.emplace_back();
    query.group = group;
    query.text = summary_of(set);
    for (size_t m = 0; m < set.members.size(); ++m) {
      const size_t key = out.keys.size();
      explain::Item& member = out.keys.emplace_back();
      member.group = group;
      member.text = shown_name(set.members[m]);
      member.picture = picture_of(set.values.data() + m * static_cast<size_t>(side * side), side);
      dense[i * members + key] = set.share[m];
      if (m != set.odd) continue;
      if (!out.truth) out.truth = explain::Truth{.label = "the odd one"};
      out.truth->sure.push_back({static_cast<int32_t>(i), static_cast<int32_t>(key)});
    }
  }
  out.notes.push_back(
      "Every member is judged against the whole set: the equivariant layers subtract what the set "
      "has in common.");
  return out;
}

explain::Explanation what_would_fit(const std::string& set, const Ranking& ranking,
                                    const std::string& hidden) {
  explain::Explanation out;
  out.title = "What would fit this set";
  out.view = explain::View::kBag;
  out.score = "s(x|X) = f({x} ∪ X)";
  out.normaliser = "none: margins over the tenth candidate";
  out.structure = "set";
  out.scale = "1";
  out.query_label = "set";
  out.key_label = "candidate";
  out.queries.emplace_back().text = set;
  auto& dense = out.maps.emplace_back().dense;
  const double last = ranking.empty() ? 0 : ranking.back().second;
  if (!hidden.empty()) out.truth = explain::Truth{.label = "the hidden one"};
  for (size_t i = 0; i < ranking.size(); ++i) {
    out.keys.emplace_back().text = ranking[i].first;
    dense.push_back(static_cast<float>(ranking[i].second - last));
    if (ranking[i].first == hidden) out.truth->sure.push_back({0, static_cast<int32_t>(i)});
  }
  out.outcome = ranking.empty() ? "" : "best: " + ranking.front().first;
  out.notes.push_back(
      "A bar is the candidate's margin over the tenth; things already in the set are no "
      "candidates.");
  return out;
}

}  // namespace fovea::systems::set_outlier
