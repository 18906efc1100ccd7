#include "systems/show_attend_tell/telling.h"

#include <torch/torch.h>

namespace fovea::systems::show_attend_tell {
namespace {

nn::BeamOptions search_options(const OptionValues& options, int64_t beam) {
  return {.beam = beam,
          .length_alpha = options.number("alpha"),
          .begin = data::kBos,
          .end = data::kEos,
          .never = {data::kPad, data::kUnk, data::kBos},
          .doubles = false,
          .no_repeat = options.integer("no_repeat")};
}

}  // namespace

Told Teller::follow(const Lines& lines) const {
  return model.tell(model.see(gallery.of(lines.items).to(run_options.device)), lines.words,
                    lines.real);
}

std::vector<nn::Hypothesis> Teller::search(const torch::Tensor& pictures, int64_t beam) const {
  const torch::NoGradGuard no_grad;
  const auto speaker = speak(model, pictures.to(run_options.device));
  const std::vector<int64_t> most(static_cast<size_t>(pictures.size(0)),
                                  run_options.options.integer("longest") + 1);
  std::vector<nn::Hypothesis> out;
  for (nn::SearchResult& one :
       nn::beam_search(*speaker, most, search_options(run_options.options, beam)))
    out.push_back(one.n_best.empty() ? nn::Hypothesis{} : std::move(one.n_best.front()));
  return out;
}

void Teller::look(const torch::Tensor& picture, Shown& shown) const {
  const torch::NoGradGuard no_grad;
  const nn::Hypothesis best = search(picture, run_options.options.integer("beam")).front();
  shown.words = words_of(best.tokens, vocabulary);
  shown.log_probability = best.log_probability;
  const Seen seen = model.see(picture.to(run_options.device));
  State state = model.start(seen);
  const int64_t regions = gallery.shape().count;
  std::vector<torch::Tensor> weights, gates;
  int64_t last = data::kBos;
  if (shown.words.empty()) shown.words = {"(nothing)"};
  for (size_t t = 0; t < shown.words.size(); ++t) {
    const Model::Step step = model.step(seen, state, torch::tensor({last}).to(run_options.device));
    weights.push_back(step.weights.defined()
                          ? step.weights[0].cpu()
                          : torch::full({regions}, 1 / static_cast<double>(regions)));
    gates.push_back(step.gate.cpu());
    if (t < best.tokens.size()) last = best.tokens[t];
  }
  shown.weights = torch::stack(weights);
  shown.gates = torch::cat(gates);
}

}  // namespace fovea::systems::show_attend_tell
