// A decoding step in tables: scores → distribution → sum → concatenation → word.
#include <ATen/ATen.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "explain/table_rows.h"
#include "translate/pictures.h"

namespace fovea::translate {
namespace {

std::string numbers(const at::Tensor& vector, int64_t most) {
  std::vector<std::string> shown;
  for (int64_t i = 0; i < std::min(most, vector.size(0)); ++i)
    shown.push_back(fmt::format("{:.2f}", vector[i].item<double>()));
  if (vector.size(0) > most) shown.emplace_back("…");
  return fmt::format("{}", fmt::join(shown, "  "));
}

// Steps 1 to 3, a row for each source token.
explain::Table mixing(const DecodingSteps& steps, const explain::Explanation& e, int64_t t) {
  explain::Table table;
  table.title = fmt::format("Before “{}”: where to look", e.queries[static_cast<size_t>(t)].text);
  table.query = static_cast<int>(t);
  table.columns = {e.key_label, "1 score e", "2 weight a", "3 a × h (first of its numbers)",
                   "sum so far"};
  double sum = 0;
  for (size_t j = 0; j < e.keys.size(); ++j) {
    const auto s = static_cast<int64_t>(j);
    const double part = steps.weights[t][s].item<double>() * steps.states[s][0].item<double>();
    sum += part;
    table.rows.push_back({e.keys[j].text, fmt::format("{:.2f}", steps.scores[t][s].item<double>()),
                          fmt::format("{:.3f}", steps.weights[t][s].item<double>()),
                          fmt::format("{:.3f}", part), fmt::format("{:.3f}", sum)});
  }
  return table;
}

// Steps 4 and 5: what is put side by side, and the words that could come next.
explain::Table choosing(const DecodingSteps& steps, const PictureContext& context, int64_t t) {
  constexpr int64_t kNumbers = 5, kWords = 4;
  explain::Table table;
  table.title = "Then: sum and state side by side, and a word";
  table.query = static_cast<int>(t);
  table.columns = {"", "numbers", "how many"};
  const auto row = [&](const char* name, const at::Tensor& vector) {
    table.rows.push_back({name, numbers(vector, kNumbers), std::to_string(vector.size(0))});
  };
  row("context c, the sum", steps.contexts[t]);
  row("decoder state s", steps.decoder[t]);
  row("4 concatenation [c; s]", at::cat({steps.contexts[t], steps.decoder[t]}));
  const at::Tensor p = steps.logits[t].softmax(0);
  const auto [best, words] = p.topk(std::min(kWords, p.size(0)));
  for (int64_t i = 0; i < best.size(0); ++i)
    table.rows.push_back({fmt::format("5 word: {}", context.target.piece(words[i].item<int64_t>())),
                          fmt::format("p = {:.3f}", best[i].item<double>()), ""});
  return table;
}

}  // namespace

explain::Explanation step_picture(const PictureContext& context, const DecodingSteps& steps,
                                  explain::Explanation attention) {
  attention.title = "One decoding step, number by number";
  attention.plots.clear();
  attention.notes = {
      "Choose an output token: the tables follow. A score for each source token; softmax makes "
      "shares of them; the source's states are summed in these shares; the sum and the decoder's "
      "own state, side by side, choose the word."};
  const size_t tokens = attention.queries.size(),
               most = std::max<size_t>(explain::kMostTableRows / attention.keys.size(), 1);
  for (int64_t t = 0; t < static_cast<int64_t>(std::min(tokens, most)); ++t) {
    attention.tables.push_back(mixing(steps, attention, t));
    attention.tables.push_back(choosing(steps, context, t));
  }
  if (tokens > most)
    attention.notes.push_back(
        fmt::format("The tables are those of the first {} of {} output tokens.", most, tokens));
  return attention;
}

}  // namespace fovea::translate
