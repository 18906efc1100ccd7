#include "systems/show_attend_tell/judge.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "data/batches.h"
#include "metrics/captions.h"
#include "train/descent/finite.h"
#include "train/interrupt.h"

namespace fovea::systems::show_attend_tell {
namespace {

constexpr size_t kSearched = 64;  // pictures at a time

// Whether the region shows what the word names; -1: it names nothing.
int points(const Teller& teller, const data::CaptionSet& set, const Line& line, size_t word,
           int64_t region) {
  int out = -1;
  for (const auto& [name, box] : set.items[static_cast<size_t>(line.item)].boxes)
    if (teller.vocabulary.id(name) == line.ids[word])
      out = std::max<int>(out, points_at(box, region, teller.gallery.shape().grid));
  return out;
}

void read_again(const Teller& teller, const data::CaptionSet& set,
                const std::vector<int64_t>& items, Evaluation& out) {
  const torch::NoGradGuard no_grad;
  int64_t cut = 0;
  const std::vector<Line> lines =
      lines_of(set, items, teller.vocabulary, teller.run_options.options.integer("longest"), cut);
  double loss = 0, words = 0, named = 0, found = 0;
  for (const auto& positions :
       data::ordered_batches(static_cast<int64_t>(lines.size()), {}, {.items = 128})) {
    train::stop_if_interrupted("while judging");
    const Lines batch = batch_of(lines, positions, teller.run_options.device);
    const Told told = teller.follow(batch);
    const torch::Tensor log_p =
        train::finite(told.logits, "logits").to(torch::kFloat64).log_softmax(1);
    loss -= log_p.gather(1, batch.targets.unsqueeze(1)).sum().item<double>();
    words += static_cast<double>(batch.targets.size(0));
    if (!told.weights.defined() || teller.gallery.shape().grid == 0) continue;
    const torch::Tensor heaviest = told.weights.argmax(2).cpu();
    for (size_t i = 0; i < positions.size(); ++i) {
      const Line& line = lines[static_cast<size_t>(positions[i])];
      for (size_t t = 0; t < line.ids.size(); ++t) {
        const int hit =
            points(teller, set, line, t,
                   heaviest[static_cast<int64_t>(i)][static_cast<int64_t>(t)].item<int64_t>());
        named += hit >= 0;
        found += hit > 0;
      }
    }
  }
  out.metrics["loss"] = loss / words;
  out.metrics["perplexity"] = std::exp(loss / words);
  if (named > 0) out.attention["hit_rate"] = found / named;
}

}  // namespace

Evaluation judge(const Teller& teller, const data::CaptionSet& set,
                 const std::vector<int64_t>& items, int64_t beam) {
  Evaluation out;
  out.items = static_cast<int64_t>(items.size());
  if (items.empty()) {
    out.notes.push_back("no pictures to evaluate, so no figures");
    return out;
  }
  std::vector<metrics::CaptionWords> captions;
  std::vector<std::vector<metrics::CaptionWords>> references;
  double exact = 0;
  for (size_t from = 0; from < items.size(); from += kSearched) {
    train::stop_if_interrupted("while telling");
    const std::span some =
        std::span(items).subspan(from, std::min<size_t>(kSearched, items.size() - from));
    const std::vector<nn::Hypothesis> found = teller.search(teller.gallery.of(some), beam);
    for (size_t i = 0; i < some.size(); ++i) {
      captions.push_back(words_of(found[i].tokens, teller.vocabulary));
      references.emplace_back();
      for (const std::string& one : set.items[static_cast<size_t>(some[i])].captions)
        references.back().push_back(data::caption_words(one));
      exact += std::find(references.back().begin(), references.back().end(), captions.back()) !=
               references.back().end();
    }
  }
  const auto bleu = metrics::caption_bleu(captions, references);
  for (size_t n = 1; n < bleu.size(); ++n) out.metrics[fmt::format("bleu{}", n)] = bleu[n - 1];
  out.metrics["bleu"] = bleu.back();
  out.metrics["cider"] = metrics::cider_d(captions, references);
  out.metrics["exact"] = exact / static_cast<double>(items.size());
  read_again(teller, set, items, out);
  out.notes.push_back("bleu is BLEU-4 as pycocoevalcap computes it: " +
                      metrics::caption_signature(references));
  return out;
}

}  // namespace fovea::systems::show_attend_tell
