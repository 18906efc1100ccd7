#include "systems/memory_network/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "explain/capture.h"
#include "train/task.h"

namespace fovea::systems::memory_network {
namespace {

constexpr const char* kRight = ", which is right";

}  // namespace

int64_t facts_read(const explain::Explanation& picture) {
  if (!picture.truth || !picture.outcome.ends_with(kRight)) return 0;
  const std::vector<float>& dense = picture.maps.front().dense;
  const auto lines = static_cast<std::ptrdiff_t>(picture.keys.size());
  std::set<int32_t> read, support;
  for (auto row = dense.begin(); row != dense.end(); row += lines)
    read.insert(static_cast<int32_t>(std::max_element(row, row + lines) - row));
  for (const explain::Link& link : picture.truth->sure) support.insert(link.key);
  return std::includes(read.begin(), read.end(), support.begin(), support.end())
             ? static_cast<int64_t>(support.size())
             : 0;
}

explain::Explanation picture(const Shown& shown, const nn::Recall& recall) {
  explain::Explanation out;
  out.title = shown.question;
  out.view = explain::View::kMemory;
  explain::label(out, recall.hops.front().choices, {}, recall.state.size(1));
  out.query_label = "hop";
  out.key_label = "line of the story";
  out.outcome = fmt::format("{}, p = {:.3f}", shown.answer, shown.probability);
  if (!shown.expected.empty())
    out.outcome += shown.expected == shown.answer ? std::string(kRight)
                                                  : fmt::format("; right: {}", shown.expected);
  for (const std::string& line : shown.lines) out.keys.emplace_back().text = line;
  auto& dense = out.maps.emplace_back().dense;
  explain::Truth truth{.label = "a supporting line"};
  for (size_t hop = 0; hop < recall.hops.size(); ++hop) {
    const nn::Hop& read = recall.hops[hop];
    out.queries.emplace_back().text = fmt::format("hop {}", hop + 1);
    const std::vector<float> row = to_floats(weights(read.query, read.key, read.choices).weights);
    dense.insert(dense.end(), row.begin(), row.end());
    for (const int64_t line : shown.support)
      truth.sure.push_back({static_cast<int32_t>(hop), static_cast<int32_t>(line), 1});
  }
  if (!shown.support.empty()) out.truth = std::move(truth);
  if (shown.forgotten > 0)
    out.notes.push_back(fmt::format("{} older lines are no longer in the memory of {}.",
                                    shown.forgotten, shown.lines.size()));
  return out;
}

}  // namespace fovea::systems::memory_network
