#include "systems/scaled_dot_product/view.h"

#include <fmt/format.h>

#include "fovea/attend.h"
#include "systems/scaled_dot_product/six_steps.h"
#include "train/task.h"

namespace fovea::systems::scaled_dot_product {
namespace {

explain::Table table(const Model& model, const Sentence& sentence, int64_t query,
                     const SixSteps& steps) {
  explain::Table out;
  out.title = fmt::format("Six steps for “{}”", sentence.words[static_cast<size_t>(query)]);
  out.query = static_cast<int>(query);
  out.columns = {"word",        "1 key k",
                 "2 q·k",       fmt::format("3 ÷ √{}", model.scale_width),
                 "4 softmax",   "5 weight × v (first of its numbers)",
                 "6 sum so far"};
  double sum = 0;
  for (size_t j = 0; j < sentence.words.size(); ++j) {
    const auto at = static_cast<int64_t>(j);
    const double part = steps.weighted[at][0].item<double>();
    sum += part;
    out.rows.push_back({sentence.words[j], fmt::format("k{}", j + 1),
                        fmt::format("{:.2f}", steps.scores[at].item<double>()),
                        fmt::format("{:.2f}", steps.scaled[at].item<double>()),
                        fmt::format("{:.3f}", steps.weights[at].item<double>()),
                        fmt::format("{:.3f}", part), fmt::format("{:.3f}", sum)});
  }
  return out;
}

}  // namespace

explain::Explanation picture(Model& model, const Sentence& sentence, const torch::Tensor& x) {
  const torch::Tensor q = model.q_proj(x), k = model.k_proj(x), v = model.v_proj(x);
  explain::Explanation out;
  out.title = "Whom does “it” mean?";
  out.view = explain::View::kBipartite;
  out.score = "q·k / √d_k";
  out.normaliser = "softmax";
  out.structure = "all words of the sentence";
  out.scale = fmt::format("1/√{}", model.scale_width);
  out.query_label = "word that looks";
  out.key_label = "word looked at";
  for (const std::string& word : sentence.words) {
    out.queries.emplace_back().text = word;
    out.keys.emplace_back().text = word;
  }
  out.maps.emplace_back().dense = to_floats(weights(four(q), four(k)).weights);
  if (sentence.meant >= 0) {
    explain::Truth truth;
    truth.label = "the one meant";
    truth.sure.push_back(
        {static_cast<int32_t>(sentence.asks), static_cast<int32_t>(sentence.meant), 1});
    out.truth = truth;
  }
  for (int64_t i = 0; i < x.size(0); ++i)
    out.tables.push_back(table(model, sentence, i, six_steps(q[i], k, v)));
  return out;
}

}  // namespace fovea::systems::scaled_dot_product
