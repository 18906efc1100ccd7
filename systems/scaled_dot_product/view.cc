#include "systems/scaled_dot_product/view.h"

#include <fmt/format.h>

#include "explain/table_rows.h"
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

explain::Explanation picture(Model& model, const Sentence& sentence, const torch::Tensor& asking,
                             const torch::Tensor& x) {
  const torch::Tensor q = model.q_proj(asking), k = model.k_proj(x), v = model.v_proj(x);
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
  const int64_t words = x.size(0);
  const bool all = static_cast<size_t>(words * words) <= explain::kMostTableRows;
  for (int64_t i = all ? 0 : sentence.asks; i < (all ? words : sentence.asks + 1); ++i)
    out.tables.push_back(table(model, sentence, i, six_steps(q[i], k, v)));
  if (!all)
    out.notes.push_back(
        fmt::format("A sentence of {} words: the six steps are those of “it” alone.", words));
  return out;
}

explain::Explanation thinking_machines() {
  constexpr int64_t kWidth = 64;  // d_k, whose root is 8
  const auto vector = [](double first, double second) {
    torch::Tensor out = torch::zeros({kWidth}, torch::kFloat64);
    out[0] = first;
    out[1] = second;
    return out;
  };
  const torch::Tensor q = vector(8, 8), k = torch::stack({vector(7, 7), vector(6, 6)}),
                      v = torch::eye(2, torch::kFloat64);
  const SixSteps steps = six_steps(q, k, v);
  explain::Explanation out;
  out.title = "“Thinking Machines”, by hand";
  out.view = explain::View::kBipartite;
  out.score = "q·k / √d_k";
  out.normaliser = "softmax";
  out.structure = "both words";
  out.scale = "1/√64 = 1/8";
  out.query_label = "word that looks";
  out.key_label = "word looked at";
  out.queries.emplace_back().text = "Thinking";
  for (const char* word : {"Thinking", "Machines"}) out.keys.emplace_back().text = word;
  out.maps.emplace_back().dense = to_floats(steps.weights.to(torch::kFloat32));
  explain::Table& table = out.tables.emplace_back();
  table.title = "Six steps for “Thinking”";
  table.columns = {"word", "1 query, key, value", "2 q₁·k", "3 ÷ 8", "4 softmax", "5 weight × v"};
  for (int64_t j = 0; j < 2; ++j)
    table.rows.push_back(
        {out.keys[static_cast<size_t>(j)].text, j == 0 ? "q₁, k₁, v₁" : "k₂, v₂",
         fmt::format("{:.0f}", steps.scores[j].item<double>()),
         fmt::format("{:.0f}", steps.scaled[j].item<double>()),
         fmt::format("{:.2f}", steps.weights[j].item<double>()),
         fmt::format("{:.2f} v{}", steps.weights[j].item<double>(), j == 0 ? "₁" : "₂")});
  table.rows.push_back({"6 sum", "", "", "", "",
                        fmt::format("z₁ = {:.2f} v₁ + {:.2f} v₂", steps.sum[0].item<double>(),
                                    steps.sum[1].item<double>())});
  out.notes = {
      "q₁ = (8, 8, 0, …), k₁ = (7, 7, 0, …) and k₂ = (6, 6, 0, …), 64 numbers each, have the "
      "products of the lecture: 112 and 96. Without the division the weights would be 0.9999999 "
      "and 0.0000001."};
  return out;
}

}  // namespace fovea::systems::scaled_dot_product
