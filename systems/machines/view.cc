#include "systems/machines/view.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cmath>
#include <numbers>

#include "train/task.h"

namespace fovea::systems::machines {
namespace {

constexpr float kFaintLink = 0.02f;  // no arrow is drawn for less

// Steps down, rows across.
explain::Explanation frame(const Machine& machine, const Shown& shown, const std::string& what) {
  explain::Explanation out;
  out.title = fmt::format("{}: {}", what, shown.title);
  out.view = explain::View::kMatrix;
  out.score = machine.score();
  out.normaliser = "softmax";
  out.structure = "all rows of the memory";
  out.scale = "β of each head and step";
  out.outcome = shown.outcome;
  out.notes = shown.notes;
  out.query_label = "step";
  out.key_label = "row";
  for (const std::string& step : shown.steps) out.queries.emplace_back().text = step;
  for (int64_t i = 0; i < shown.moments.front().memory.size(1); ++i)
    out.keys.emplace_back().text = std::to_string(i);
  return out;
}

// A map for each head of the [1, heads, N] that `of` returns.
template <class Of>
explain::Explanation over_time(explain::Explanation out, const Shown& shown, const Of& of) {
  const int64_t heads = of(shown.moments.front()).size(1);
  out.heads = {"head", {}};
  for (int64_t head = 0; head < heads; ++head) {
    out.heads.names.push_back(std::to_string(head + 1));
    std::vector<torch::Tensor> rows;
    for (const Moment& moment : shown.moments) rows.push_back(of(moment)[0][head]);
    out.maps.push_back({0, static_cast<int>(head), to_floats(torch::stack(rows)), {}});
  }
  return out;
}

// The numbers in the memory, after the step that the reader chooses.
explain::Explanation contents(const Machine& machine, const Shown& shown) {
  explain::Explanation out = frame(machine, shown, "The memory");
  out.queries = out.keys;
  out.query_label = "row";
  out.key_label = "number";
  out.keys.clear();
  for (int64_t i = 0; i < shown.moments.front().memory.size(2); ++i)
    out.keys.emplace_back().text = std::to_string(i + 1);
  out.layers = {"after step", shown.steps, static_cast<int>(shown.taken_in) - 1};
  for (size_t t = 0; t < shown.moments.size(); ++t)
    out.maps.push_back({static_cast<int>(t), 0, to_floats(shown.moments[t].memory[0]), {}});
  out.notes.push_back("These are the numbers that the memory holds, not weights.");
  return out;
}

// An arrow from row i to the row that was written before it.
explain::Explanation links(const Machine& machine, const Shown& shown) {
  explain::Explanation out = frame(machine, shown, "Links: which row was written before");
  out.view = explain::View::kGraph;
  const size_t rows = out.keys.size();
  for (size_t i = 0; i < rows; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(rows);
    out.keys[i].position = {std::sin(angle), -std::cos(angle)};
  }
  out.queries = out.keys;
  out.query_label = "row";
  out.key_label = "written before it";
  out.score = "written after";
  out.normaliser = "none";
  out.scale = "1";
  out.layers = {"after step", shown.steps, static_cast<int>(shown.taken_in) - 1};
  for (size_t t = 0; t < shown.moments.size(); ++t) {
    explain::Map map{.layer = static_cast<int>(t)};
    const std::vector<float> all = to_floats(shown.moments[t].links[0]);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] > kFaintLink)
        map.links.push_back(
            {static_cast<int32_t>(i / rows), static_cast<int32_t>(i % rows), all[i]});
    out.maps.push_back(std::move(map));
  }
  return out;
}

}  // namespace

std::vector<explain::Explanation> pictures(const Machine& machine, const Shown& shown) {
  std::vector<explain::Explanation> out;
  out.push_back(over_time(frame(machine, shown, "Written"), shown,
                          [](const Moment& moment) { return moment.write; }));
  out.push_back(over_time(frame(machine, shown, "Read"), shown,
                          [](const Moment& moment) { return moment.read; }));
  if (!shown.truth.empty())
    out.back().truth =
        explain::Truth{.label = "the row that this word was written to", .sure = shown.truth};
  out.push_back(contents(machine, shown));
  if (shown.moments.front().usage.defined()) {
    explain::Explanation usage =
        over_time(frame(machine, shown, "Usage"), shown,
                  [](const Moment& moment) { return moment.usage.unsqueeze(1); });
    usage.score = "written and not yet freed";
    usage.normaliser = "none";
    usage.scale = "1";
    out.push_back(std::move(usage));
  }
  if (shown.moments.front().links.defined()) out.push_back(links(machine, shown));
  return out;
}

}  // namespace fovea::systems::machines
