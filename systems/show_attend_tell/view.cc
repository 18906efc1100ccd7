#include "systems/show_attend_tell/view.h"

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <cmath>

#include "explain/capture.h"
#include "systems/show_attend_tell/lines.h"
#include "train/task.h"

namespace fovea::systems::show_attend_tell {
namespace {

constexpr int kBlank = 8;  // pixels of a region where there is no picture

explain::Picture drawn_on(const data::Image& image, int64_t grid) {
  if (!image.pixels.empty())
    return {static_cast<int>(image.width), static_cast<int>(image.height),
            static_cast<int>(image.channels), image.pixels};
  const int side = static_cast<int>(grid) * kBlank;
  return {side, side, 1, std::vector<uint8_t>(static_cast<size_t>(side * side), 40)};
}

void add_regions(explain::Explanation& out, const Shape& shape) {
  const int64_t grid = shape.regions.grid;
  const double share = grid > 0 ? 1 / static_cast<double>(grid) : 0;
  for (int64_t i = 0; i < shape.regions.count; ++i) {
    explain::Item& item = out.keys.emplace_back();
    item.text = grid > 0 ? fmt::format("row {}, column {}", i / grid + 1, i % grid + 1)
                         : fmt::format("region {}", i + 1);
    if (grid > 0)
      item.position = {static_cast<double>(i % grid) * share, static_cast<double>(i / grid) * share,
                       share, share};
  }
}

// Hard attention: the weights, regions drawn from them, and the one that was read.
void add_draws(explain::Explanation& out, const torch::Tensor& weights) {
  constexpr int64_t kDraws = 20;
  out.heads = {"shown", {"weights", fmt::format("{} regions drawn", kDraws), "the region read"}};
  const at::Generator always_the_same = at::detail::createCPUGenerator(1);
  const torch::Tensor draws =
      torch::multinomial(weights, kDraws, /*replacement=*/true, always_the_same);
  const torch::Tensor ones = torch::full_like(draws, 1.0 / kDraws, weights.options());
  out.maps.push_back({0, 1, to_floats(torch::zeros_like(weights).scatter_add(1, draws, ones)), {}});
  out.maps.push_back(
      {0,
       2,
       to_floats(torch::zeros_like(weights).scatter(1, weights.argmax(1, /*keepdim=*/true), 1.0)),
       {}});
}

void add_truth(explain::Explanation& out, const Shown& shown, const Shape& shape) {
  explain::Truth truth{.label = "what the word names"};
  for (size_t t = 0; t < shown.words.size(); ++t)
    for (const auto& [word, box] : shown.boxes)
      for (int64_t i = 0; word == shown.words[t] && i < shape.regions.count; ++i)
        if (points_at(box, i, shape.regions.grid))
          truth.sure.push_back({static_cast<int32_t>(t), static_cast<int32_t>(i), 1});
  if (!truth.sure.empty()) out.truth = std::move(truth);
}

}  // namespace

explain::Explanation picture(const Shown& shown, const Shape& shape) {
  explain::Explanation out;
  out.title = shown.name;
  const std::string told = fmt::format("{}", fmt::join(shown.words, " "));
  out.outcome = fmt::format("{}, p = {:.3g}", told.empty() ? "(nothing)" : told,
                            std::exp(shown.log_probability));
  if (shown.references.size() == 1)
    out.outcome = told == shown.references[0]
                      ? "right: " + out.outcome
                      : fmt::format("wrong: {} (true: {})", out.outcome, shown.references[0]);
  out.query_label = "word";
  out.key_label = "region";
  if (!shown.references.empty()) {
    explain::Table& table = out.tables.emplace_back();
    table.title = "What people said";
    table.columns = {"caption"};
    for (const std::string& reference : shown.references) table.rows.push_back({reference});
  }
  out.view = shape.regions.grid > 0 ? explain::View::kImage : explain::View::kMatrix;
  if (attends(shape.looks)) {
    explain::label(out, Choices{.score = Additive{}}, {}, shape.attention);
  } else {
    explain::label(out, Choices{.score = Constant{}, .normaliser = Uniform{}}, {}, shape.attention);
    out.notes.push_back(shape.looks == Looks::kNone
                            ? "Every word saw the mean of all regions, whatever was said before."
                            : "The mean of all regions was seen once, before the first word.");
  }
  for (const std::string& word : shown.words) out.queries.emplace_back().text = word;
  add_regions(out, shape);
  out.maps.push_back({0, 0, to_floats(shown.weights), {}});
  if (shape.looks == Looks::kHard) add_draws(out, shown.weights.to(torch::kFloat32));
  if (shape.regions.grid > 0) {
    out.picture = drawn_on(shown.picture, shape.regions.grid);
    add_truth(out, shown, shape);
    if (shown.picture.pixels.empty())
      out.notes.push_back("The picture itself is not in the data: only where its regions are.");
    out.notes.push_back(
        "A weight belongs to a region's receptive field, which is larger than its cell and "
        "blurred: "
        "not to a segment of the picture. The smooth overlay is drawn between the cells' weights.");
  }
  if (shape.looks == Looks::kStart) return out;
  std::string gates;
  for (size_t t = 0; t < shown.words.size(); ++t)
    gates += fmt::format("{}{} {:.2f}", t ? ", " : "", shown.words[t],
                         shown.gates[static_cast<int64_t>(t)].item<double>());
  out.notes.push_back("How much of the picture each word took in (β): " + gates + ".");
  return out;
}

}  // namespace fovea::systems::show_attend_tell
