#include "systems/next_word/blank.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <string>
#include <utility>
#include <vector>

#include "data/formats/text.h"
#include "data/random.h"

namespace fovea::systems::next_word {

torch::Tensor Blank::weights(const Sentence& sentence) {
  const std::vector<std::string> words(sentence.words.begin(), sentence.words.end() - 1);
  const std::vector<int64_t> ids = ids_of(tokens_, fmt::format("{}", fmt::join(words, " ")));
  const torch::Tensor tokens =
      torch::tensor(ids, torch::kLong).unsqueeze(0).to(model_->parameters().front().device());
  // Without the beginning: what is left are the words.
  return model_->weights(tokens).select(1, 0).select(2, -1).narrow(-1, 1, tokens.size(1) - 1).cpu();
}

// Nothing tells which head fills the blank. It is the head that looks at the deciding word of new
// sentences most often.
Blank::Place Blank::looking_head() {
  constexpr int kJudged = 100;
  const nn::LanguageModelOptions& sizes = model_->options();
  torch::Tensor hits = torch::zeros({sizes.layers, sizes.heads}, torch::kLong);
  data::Random random(data::mix(seed_, 0x3838));
  for (int i = 0; i < kJudged; ++i) {
    const Sentence sentence = draw(random);
    if (static_cast<int64_t>(sentence.words.size()) > sizes.context) continue;
    hits += weights(sentence).argmax(-1).eq(sentence.decides).to(torch::kLong);
  }
  const auto best = hits.flatten().argmax().item<int64_t>();
  return {best / sizes.heads, best % sizes.heads};
}

void Blank::judge_attention(const Documents& documents, Split split, Evaluation& out) {
  constexpr size_t kMost = 1000;
  std::vector<Sentence> known;
  for (const int64_t item : documents.splits.of(split)) {
    Sentence sentence = sentence_of(data::words(documents.texts[static_cast<size_t>(item)]));
    if (sentence.decides < 0 || sentence.words.size() < 2 ||
        sentence.decides + 1 >= static_cast<int64_t>(sentence.words.size()) ||
        static_cast<int64_t>(sentence.words.size()) > model_->options().context)
      continue;
    known.push_back(std::move(sentence));
    if (known.size() == kMost) break;
  }
  if (known.empty()) return;
  const Place place = looking_head();
  double hits = 0;
  for (const Sentence& sentence : known)
    hits += weights(sentence)[place.layer][place.head].argmax().item<int64_t>() == sentence.decides;
  out.attention = {{"hit_rate", hits / static_cast<double>(known.size())}};
}

}  // namespace fovea::systems::next_word
