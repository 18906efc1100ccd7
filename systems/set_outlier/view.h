// Pictures of sets: each member's share of being the odd one, and what would fit a set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "explain/explanation.h"

namespace fovea::systems::set_outlier {

// A set of pictures on a page.
struct ShownSet {
  std::string name = {};
  std::vector<std::string> members = {};
  std::vector<float> values = {};  // the members' pixels, one member after the other
  std::optional<size_t> odd = {};  // where it is known
  std::vector<float> share = {};   // of each member
};
// The true odd one is marked where it is known. Pictures are side x side.
explain::Explanation odd_ones(std::span<const ShownSet> sets, int64_t side);

// Candidates and what each is worth, best first.
using Ranking = std::vector<std::pair<std::string, double>>;
// `hidden`: the candidate that was taken out of the set; empty if there is none.
explain::Explanation what_would_fit(const std::string& set, const Ranking& ranking,
                                    const std::string& hidden = "");

}  // namespace fovea::systems::set_outlier
