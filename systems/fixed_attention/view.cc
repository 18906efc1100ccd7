#include "systems/fixed_attention/view.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "systems/fixed_attention/model.h"
#include "text/pictures.h"
#include "text/task.h"

namespace fovea::systems::fixed_attention {
namespace {

constexpr int64_t kArrowWords = 60;  // most frequent ones, drawn around the arrows

// θ as arrows among the word vectors, in the plane where both vary most.
explain::Explanation arrows(text::TextTask& task) {
  auto& model = dynamic_cast<FixedAttentionModel&>(task.model());
  const int64_t count = std::min(kArrowWords, task.vocabulary().size() - data::kEos - 1);
  const at::Tensor words =
      model.embedding->weight.detach().slice(0, data::kEos + 1, data::kEos + 1 + count);
  const at::Tensor theta =
      model.theta.detach() * (words.norm(2, {1}).max() / model.theta.detach().norm(2, {1}).max());
  const at::Tensor origin = at::zeros({1, words.size(1)}, words.options());
  const at::Tensor places = text::plane(at::cat({words, theta, origin}));
  text::Words names;
  for (int64_t i = 0; i < count; ++i) names.push_back(task.vocabulary().word(data::kEos + 1 + i));
  explain::Explanation out;
  out.title = "The learned queries θ among the word vectors";
  out.view = explain::View::kCurve;
  out.score = "dot θᵀx", out.normaliser = task.options().text("normaliser"),
  out.structure = "sentence", out.scale = "θ drawn as long as the longest word";
  explain::Plot plot = text::word_plane("Words along an arrow get a large weight", names, places);
  for (int64_t r = 0; r < theta.size(0); ++r) {
    explain::Curve& arrow = plot.curves.emplace_back();
    arrow.label = fmt::format("θ{}", r + 1);
    for (const int64_t row : {count + theta.size(0), count + r}) {
      arrow.x.push_back(places[row][0].item<double>());
      arrow.y.push_back(places[row][1].item<double>());
    }
  }
  out.plots.push_back(std::move(plot));
  return out;
}

}  // namespace

std::vector<explain::Explanation> pictures(text::TextTask& task) {
  std::vector<explain::Explanation> out;
  if (!task.own_data())
    for (const char* line : {"the acting was really great", "the acting was not really great"}) {
      text::Document document;
      document.texts = {line};
      out.push_back(task.picture(document, fmt::format("\"{}\"", line)));
    }
  if (task.options().text("score") == "dot" && task.options().text("context") == "none")
    out.push_back(arrows(task));
  return out;
}

}  // namespace fovea::systems::fixed_attention
