#include "systems/structured_attention/view.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include "systems/structured_attention/model.h"
#include "text/pictures.h"
#include "text/task.h"

namespace fovea::systems::structured_attention {
namespace {

// A lone dark word, a run with a light word in it, another lone one.
constexpr const char* kExample =
    "green darkblue red yellow darkred darkred blue darkred darkgreen yellow red darkblue brown";

text::Batch batch_of(const text::TextTask& task, const std::vector<explain::Item>& words) {
  std::vector<int64_t> ids;
  for (const explain::Item& word : words) ids.push_back(task.vocabulary().id(word.text));
  const auto count = static_cast<int32_t>(ids.size());
  return {at::tensor(ids, at::kLong), at::tensor({0, count}, at::kInt),
          at::tensor({0, 1}, at::kInt), at::zeros({1}, at::kLong)};
}

}  // namespace

std::vector<explain::Explanation> span_pictures(text::TextTask& task) {
  // Words of another text say nothing about runs.
  if (task.vocabulary().id("darkred") == data::kUnk) return {};
  auto& model = dynamic_cast<SpanModel&>(task.model());
  text::Document document;
  document.texts = {kExample};
  document.truth_words = {4, 5, 6, 7, 8};
  explain::Explanation out = task.picture(document, "A run, and lone words outside of it");
  if (task.options().text("weighing") != "structured") return {out};
  const torch::NoGradGuard no_grad;
  const text::Batch batch = batch_of(task, out.keys);
  for (const auto& [weighing, name] :
       {std::pair(Weighing::kSigmoid, "sigmoid of the same scores"),
        std::pair(Weighing::kSoftmax, "softmax of the same scores")}) {
    explain::Map& map = out.maps.emplace_back();
    map.head = static_cast<int>(out.heads.names.size());
    map.dense = to_floats(model.weights_by(weighing, batch));
    out.heads.names.emplace_back(name);
  }
  out.heads.label = "weights by";
  const at::Tensor b = model.pairwise.detach().cpu();
  out.notes.push_back(
      fmt::format("Beside the words' own scores, the chain adds {:.2f} where two neighbours are "
                  "both in or both "
                  "out, instead of one in and one out.",
                  (b[0][0] + b[1][1] - b[0][1] - b[1][0]).item<double>()));
  return {out};
}

}  // namespace fovea::systems::structured_attention
