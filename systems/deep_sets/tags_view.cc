#include "systems/deep_sets/tags_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace fovea::systems::deep_sets {
namespace {

// The likeliest by either model, and the hidden ones: what a reader compares.
Ids candidates(const ShownTags& shown) {
  constexpr size_t kMost = 12;
  Ids out(shown.alone.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<int64_t>(i);
  const auto share = [&](int64_t id) {
    const auto at = static_cast<size_t>(id);
    return std::max(shown.alone[at], shown.with_z.empty() ? 0.0f : shown.with_z[at]);
  };
  const auto is_hidden = [&](int64_t id) {
    return std::find(shown.hidden.begin(), shown.hidden.end(), id) != shown.hidden.end();
  };
  std::stable_sort(out.begin(), out.end(), [&](int64_t a, int64_t b) {
    return is_hidden(a) != is_hidden(b) ? is_hidden(a) : share(a) > share(b);
  });
  out.resize(std::min(out.size(), std::max(kMost, shown.hidden.size())));
  std::erase_if(out, [&](int64_t id) { return share(id) == 0; });  // given
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<std::string> named(const Ids& ids, const std::vector<std::string>& names) {
  std::vector<std::string> out;
  for (const int64_t id : ids) out.push_back(names[static_cast<size_t>(id)]);
  return out;
}

// The likeliest tags, as many as are wanted.
std::vector<std::string> said(const std::vector<float>& shares, size_t count,
                              const std::vector<std::string>& names) {
  Ids order(shares.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return shares[static_cast<size_t>(a)] > shares[static_cast<size_t>(b)];
  });
  order.resize(std::min(order.size(), count));
  return named(order, names);
}

}  // namespace

explain::Explanation missing_tags(const ShownTags& shown, const std::vector<std::string>& names) {
  explain::Explanation out;
  out.title = shown.given.empty() ? "Which tags, of z alone?"
                                  : fmt::format("Which tags go with {}?",
                                                fmt::join(named(shown.given, names), ", "));
  out.view = explain::View::kText;
  out.score = "ρ of the sum of φ, beside z";
  out.normaliser = "softmax over the tags not given";
  out.structure = "set";
  out.scale = "1";
  out.query_label = "model";
  out.key_label = "tag";
  const Ids shown_ids = candidates(shown);
  for (const int64_t id : shown_ids) out.keys.emplace_back().text = names[static_cast<size_t>(id)];
  auto& dense = out.maps.emplace_back().dense;
  const auto add = [&](const std::string& name, const std::vector<float>& shares) {
    out.queries.emplace_back().text = name;
    for (const int64_t id : shown_ids) dense.push_back(shares[static_cast<size_t>(id)]);
  };
  if (!shown.with_z.empty())
    add(fmt::format("the tags and z = ({:.2f})", fmt::join(shown.z, ", ")), shown.with_z);
  add("the tags alone", shown.alone);
  if (!shown.hidden.empty()) {
    explain::Truth truth{.label = "tag that was hidden"};
    for (size_t query = 0; query < out.queries.size(); ++query)
      for (size_t key = 0; key < shown_ids.size(); ++key)
        if (std::find(shown.hidden.begin(), shown.hidden.end(), shown_ids[key]) !=
            shown.hidden.end())
          truth.sure.push_back({static_cast<int32_t>(query), static_cast<int32_t>(key), 1});
    out.truth = std::move(truth);
  }
  const auto& best = shown.with_z.empty() ? shown.alone : shown.with_z;
  const std::vector<std::string> answer =
      said(best, shown.hidden.empty() ? 3 : shown.hidden.size(), names);
  out.outcome = fmt::format("{}", fmt::join(answer, ", "));
  if (!shown.hidden.empty()) {
    std::vector<std::string> wanted = named(shown.hidden, names), got = answer;
    std::sort(wanted.begin(), wanted.end());
    std::sort(got.begin(), got.end());
    std::vector<std::string> lacking;
    std::set_difference(wanted.begin(), wanted.end(), got.begin(), got.end(),
                        std::back_inserter(lacking));
    out.outcome += lacking.empty() ? " (right)"
                                   : fmt::format(" (wrong: without {})", fmt::join(lacking, ", "));
  }
  out.notes.push_back(
      "The pooled set and z enter ρ side by side. The second model has the same form without z: "
      "where "
      "the tags given do not decide, it must guess.");
  return out;
}

}  // namespace fovea::systems::deep_sets
