#include "text/pictures.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>

#include "train/task.h"

namespace fovea::text {

explain::Explanation heat_map(const Shown& shown, const Look& look) {
  explain::Explanation out;
  out.title = shown.title;
  out.outcome = shown.outcome;
  out.view = explain::View::kText;
  out.score = look.score;
  out.normaliser = look.normaliser;
  out.structure = look.structure;
  out.scale = look.scale;
  out.query_label = "document";
  out.key_label = "word";
  out.queries.emplace_back().text = "document";
  const bool bars = look.sentences.defined();
  const std::vector<float> sentence_weights =
      bars ? to_floats(look.sentences) : std::vector<float>();
  for (size_t s = 0; s < shown.sentences.size(); ++s) {
    if (bars) {
      explain::Group& group = out.groups.emplace_back();
      group.name = fmt::format("sentence {}", s + 1);
      group.weight = sentence_weights.at(s);
      if (!shown.truth_sentences.empty())
        group.truth = std::find(shown.truth_sentences.begin(), shown.truth_sentences.end(),
                                static_cast<int32_t>(s)) != shown.truth_sentences.end();
    }
    for (const std::string& word : shown.sentences[s]) {
      explain::Item& item = out.keys.emplace_back();
      item.text = word;
      if (bars) item.group = static_cast<int>(s);
    }
  }
  out.heads = {look.heads.size() > 1 ? "query" : "head", look.heads};
  for (int64_t head = 0; head < look.words.size(0); ++head) {
    explain::Map& map = out.maps.emplace_back();
    map.head = static_cast<int>(head);
    map.dense = to_floats(look.words[head]);
  }
  if (!shown.truth_words.empty()) {
    explain::Truth& truth = out.truth.emplace();
    truth.label = "the words that decide";
    for (const int32_t word : shown.truth_words) truth.sure.push_back({0, word, 1.0f});
  }
  return out;
}

at::Tensor plane(const at::Tensor& rows) {
  const at::Tensor x =
      rows.to(at::kCPU, at::kDouble) - rows.to(at::kCPU, at::kDouble).mean(0, true);
  const auto [values, vectors] = at::linalg_eigh(x.t().mm(x));  // ascending
  at::Tensor axes = vectors.slice(1, -2).flip(1);               // [width, 2]
  if (axes.size(1) < 2) axes = at::constant_pad_nd(axes, {0, 1});
  // The sign of an axis is a convention: its largest entry points up, so that the same vectors
  // always give the same picture.
  const at::Tensor largest = axes.gather(0, axes.abs().argmax(0, true));
  return x.mm(axes * at::where(largest < 0, -1.0, 1.0));
}

explain::Plot word_plane(const std::string& title, const Words& words, const at::Tensor& places) {
  explain::Plot plot;
  plot.title = title;
  plot.x_label = "first component";
  plot.y_label = "second component";
  explain::Curve& points = plot.curves.emplace_back();
  points.kind = explain::Curve::Kind::kPoints;
  points.label = "words";
  points.names = words;
  for (size_t i = 0; i < words.size(); ++i) {
    points.x.push_back(places[static_cast<int64_t>(i)][0].item<double>());
    points.y.push_back(places[static_cast<int64_t>(i)][1].item<double>());
  }
  return plot;
}

}  // namespace fovea::text
