#include "systems/alignment/view.h"

#include <ATen/ATen.h>

#include "data/formats/text.h"

namespace fovea::systems {
namespace {

using explain::Explanation;

std::vector<explain::Item> items_of(const std::string& line, int64_t count) {
  std::vector<explain::Item> items;
  for (const std::string& word : data::words(line)) {
    if (static_cast<int64_t>(items.size()) == count) break;
    explain::Item item;
    item.text = word;
    items.push_back(std::move(item));
  }
  items.resize(static_cast<size_t>(count));
  return items;
}

std::vector<explain::Link> drawn(const metrics::Links& links, const Explanation& e) {
  std::vector<explain::Link> out;
  for (const metrics::Link& link : links) {
    if (link.target < static_cast<int32_t>(e.queries.size()) &&
        link.source < static_cast<int32_t>(e.keys.size())) {
      out.push_back({link.target, link.source, 1.0f});
    }
  }
  return out;
}

std::string score_of(const std::string& method) {
  if (method == "luong") return "dot (luong)";
  if (method == "transformer") return "scaled dot, mean of heads (transformer)";
  if (method == "neural") return "log p(target word | source word)";
  if (method == "ibm1") return "p(target word | source word), counted";
  if (method == "diagonal") return "position alone";
  return "additive (bahdanau)";
}

}  // namespace

std::vector<Explanation> alignment_pictures(const AlignedPair& a) {
  Explanation e;
  e.system = "alignment";
  e.title = "How much of each source word went into each target word";
  e.view = explain::View::kMatrix;
  e.score = score_of(a.method);
  e.normaliser = a.method == "diagonal" ? "argmax" : "softmax";
  e.structure = "source words";
  e.scale = "1";
  e.outcome = a.pair.source + " → " + a.pair.target;
  e.query_label = "target word";
  e.key_label = "source word";
  e.queries = items_of(a.pair.target, a.weights.size(0));
  e.keys = items_of(a.pair.source, a.weights.size(1));
  const at::Tensor weights = a.weights.contiguous();
  const float* first = weights.const_data_ptr<float>();
  e.maps.push_back({0, 0, {first, first + weights.numel()}, {}});
  if (!a.pair.links.possible.empty()) {
    e.truth = explain::Truth{a.drawn_by_people ? "link that people drew" : "true link",
                             {},
                             drawn(a.pair.links.sure, e),
                             drawn(a.pair.links.possible, e)};
  }
  Explanation lines = e;
  lines.title = a.symmetrise == "none" ? "The links: each target word's best source word"
                                       : "The links of both directions, " + a.symmetrise;
  lines.view = explain::View::kBipartite;
  lines.normaliser = "argmax";
  lines.maps = {{0, 0, {}, drawn(a.links, e)}};
  lines.notes.push_back("In Pharaoh's form: " + metrics::format_pharaoh(a.links));
  return {e, lines};
}

}  // namespace fovea::systems
