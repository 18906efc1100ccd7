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
  explain::Table table{.title = "Nearest by cosine", .columns = {"word", "neighbours"}};
  for (const Neighbourhood& one : nearest)
    table.rows.push_back(
        {one.word, fmt::format("{}", fmt::join(in_words(one.nearest, ' '), ", "))});
  out.tables.push_back(std::move(table));
  out.notes.push_back(
      "Two axes keep little of the vectors' many: words that look close here need not be; the "
      "table compares them in full.");
  return out;
}

}  // namespace fovea::systems::word2vec
