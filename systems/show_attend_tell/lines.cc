#include "systems/show_attend_tell/lines.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

namespace fovea::systems::show_attend_tell {

std::vector<Line> lines_of(const data::CaptionSet& set, const std::vector<int64_t>& items,
                           const data::Vocabulary& vocabulary, int64_t longest, int64_t& cut) {
  std::vector<Line> out;
  for (const int64_t item : items)
    for (const std::string& caption : set.items[static_cast<size_t>(item)].captions) {
      Line line{item, vocabulary.ids(data::caption_words(caption))};
      if (static_cast<int64_t>(line.ids.size()) > longest) {
        line.ids.resize(static_cast<size_t>(longest));
        ++cut;
      }
      out.push_back(std::move(line));
    }
  return out;
}

Lines batch_of(const std::vector<Line>& lines, std::span<const int64_t> which,
               torch::Device device) {
  Lines out;
  const auto n = static_cast<int64_t>(which.size());
  size_t longest = 0;
  for (const int64_t i : which)
    longest = std::max(longest, lines[static_cast<size_t>(i)].ids.size());
  const auto steps = static_cast<int64_t>(longest) + 1;
  torch::Tensor words = torch::full({n, steps}, data::kPad, torch::kInt64);
  torch::Tensor real = torch::zeros({n, steps}, torch::kBool);
  std::vector<int64_t> targets;
  for (int64_t r = 0; r < n; ++r) {
    const Line& line = lines[static_cast<size_t>(which[static_cast<size_t>(r)])];
    out.items.push_back(line.item);
    int64_t* row = words.data_ptr<int64_t>() + r * steps;
    row[0] = data::kBos;
    std::copy(line.ids.begin(), line.ids.end(), row + 1);
    std::fill_n(real.data_ptr<bool>() + r * steps, line.ids.size() + 1, true);
    targets.insert(targets.end(), line.ids.begin(), line.ids.end());
    targets.push_back(data::kEos);
  }
  out.words = words.to(device);
  out.real = real.to(device);
  out.targets = torch::tensor(targets, torch::kInt64).to(device);
  return out;
}

std::vector<std::string> words_of(const std::vector<int64_t>& tokens,
                                  const data::Vocabulary& vocabulary) {
  std::vector<std::string> out;
  for (const int64_t token : tokens)
    if (token != data::kEos) out.push_back(vocabulary.word(token));
  return out;
}

bool points_at(const data::Box& box, int64_t region, int64_t grid) {
  const double cell = 1 / static_cast<double>(grid);
  const double x = (static_cast<double>(region % grid) + 0.5) * cell,
               y = (static_cast<double>(region / grid) + 0.5) * cell;
  return std::fabs(x - box.middle_x()) <= std::max(box.width, cell) / 2 &&
         std::fabs(y - box.middle_y()) <= std::max(box.height, cell) / 2;
}

}  // namespace fovea::systems::show_attend_tell
