#include "systems/word2vec/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "text/pictures.h"

namespace fovea::systems::word2vec {

std::vector<std::string> in_words(const std::vector<Neighbour>& nearest, char between) {
  int decimals = 3;
  const auto alike = [&](const Neighbour& a, const Neighbour& b) {
    return fmt::format("{:.{}f}", a.cosine, decimals) == fmt::format("{:.{}f}", b.cosine, decimals);
  };
  while (decimals < 6 && std::adjacent_find(nearest.begin(), nearest.end(), alike) != nearest.end())
    ++decimals;
  std::vector<std::string> out;
  for (const Neighbour& near : nearest)
    out.push_back(fmt::format("{}{}{:.{}f}", near.word, between, near.cosine, decimals));
  return out;
}

std::vector<size_t> unlike(const at::Tensor& units, size_t first, size_t count) {
  const auto rows = static_cast<size_t>(units.size(0));
  std::vector<size_t> out;
  at::Tensor likeness = at::full({units.size(0)}, -2.0, units.options());
  while (out.size() < std::min(count, rows)) {
    const size_t next = out.size() < std::max<size_t>(first, 1)
                            ? out.size()
                            : static_cast<size_t>(likeness.argmin().item<int64_t>());
    out.push_back(next);
    const auto row = static_cast<int64_t>(next);
    likeness = at::maximum(likeness, units.mv(units[row]));
    likeness[row] = 2;  // it is there already
  }
  return out;
}

explain::Explanation plane_of_words(const std::vector<std::string>& words,
                                    const at::Tensor& vectors,
                                    const std::vector<Neighbourhood>& nearest) {
  explain::Explanation out;
  out.title = "Words that keep the same company stand together";
  out.view = explain::View::kCurve;
  out.score = "dot u_o·v_c";
  out.normaliser = "sigmoid against noise";
  out.structure = "window";
  out.scale = "1";
  out.plots.push_back(text::word_plane("Word vectors in the plane where they vary most", words,
                                       text::plane(vectors)));
  explain::Table table{.title = "Nearest by cosine", .columns = {"word", "nearest", "cosine"}};
  for (const Neighbourhood& one : nearest) {
    std::vector<std::string> names;
    for (const Neighbour& near : one.nearest) names.push_back(near.word);
    table.rows.push_back({one.word, fmt::format("{}", fmt::join(names, ", ")),
                          names.empty()
                              ? ""
                              : fmt::format("{:.4f} to {:.4f}", one.nearest.front().cosine,
                                            one.nearest.back().cosine)});
  }
  out.tables.push_back(std::move(table));
  out.notes.push_back(
      "Two axes keep little of the vectors' many: words that look close here need not be; the "
      "table compares them in full.");
  return out;
}

}  // namespace fovea::systems::word2vec
