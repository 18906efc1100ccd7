#include "translate/pictures.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string_view>

#include "translate/pieces/pieces.h"

namespace fovea::translate {
namespace {

using explain::Explanation;
using explain::Item;

std::vector<Item> items_of(const Encoded& side, const Codec& codec) {
  std::vector<Item> items;
  for (const int64_t id : side.ids) {
    Item item;
    item.text = codec.piece(id);
    items.push_back(std::move(item));
  }
  Item end;
  end.text = codec.piece(kEnd);
  items.push_back(std::move(end));
  return items;
}

bool goes_on(const Item& item) {
  return item.text.starts_with(kGoesOn) && item.text.size() > std::string_view(kGoesOn).size();
}

// Word links as links between every two tokens of the words.
std::vector<explain::Link> token_links(const metrics::Links& links, const Tokens& tokens) {
  std::vector<explain::Link> out;
  for (size_t t = 0; t < tokens.target.words.size(); ++t) {
    for (size_t s = 0; s < tokens.source.words.size(); ++s) {
      if (links.contains({tokens.source.words[s], tokens.target.words[t]})) {
        out.push_back({static_cast<int32_t>(t), static_cast<int32_t>(s), 1.0f});
      }
    }
  }
  return out;
}

std::vector<std::string> numbered(const std::string& word, int64_t n) {
  std::vector<std::string> names;
  for (int64_t i = 1; i <= n; ++i)
    names.push_back(word.empty() ? std::to_string(i) : word + " " + std::to_string(i));
  return names;
}

// The weight on the truth; without one, the mean of the largest weight of each query.
double worth(const explain::Map& map, const Explanation& e) {
  const size_t keys = e.keys.size();
  double sum = 0;
  if (e.truth) {
    for (const explain::Link& link : e.truth->possible)
      sum += static_cast<double>(
          map.dense[static_cast<size_t>(link.query) * keys + static_cast<size_t>(link.key)]);
    return sum;
  }
  for (auto row = map.dense.begin(); row != map.dense.end(); row += static_cast<ptrdiff_t>(keys))
    sum += static_cast<double>(*std::max_element(row, row + static_cast<ptrdiff_t>(keys)));
  return sum;
}

void choose_head(Explanation& e) {
  const auto best = std::max_element(
      e.maps.begin(), e.maps.end(),
      [&](const explain::Map& a, const explain::Map& b) { return worth(a, e) < worth(b, e); });
  if (best == e.maps.end()) return;
  e.layers.chosen = best->layer;
  e.heads.chosen = best->head;
}

}  // namespace

std::string outcome_of(const std::string& said, const Pair& asked) {
  if (asked.target.empty()) return said;
  return said == asked.target ? said + " (right)" : said + " (wrong; right: " + asked.target + ")";
}

Explanation attention_picture(const PictureContext& context, const AttentionMaps& maps,
                              const Tokens& tokens, const Pair& pair) {
  Explanation e;
  e.system = context.system;
  e.title = maps.title;
  e.view = explain::View::kMatrix;
  e.score = maps.score;
  e.normaliser = maps.normaliser;
  e.structure = maps.structure;
  e.scale = maps.scale;
  e.outcome = pair.target;
  const bool cross = maps.kind == AttentionMaps::Kind::kCross;
  const bool source_queries = maps.kind == AttentionMaps::Kind::kSource;
  e.queries = source_queries ? items_of(tokens.source, context.source)
                             : items_of(tokens.target, context.target);
  e.keys = maps.kind == AttentionMaps::Kind::kTarget ? items_of(tokens.target, context.target)
                                                     : items_of(tokens.source, context.source);
  e.query_label = source_queries ? "source token" : "output token";
  e.key_label = maps.kind == AttentionMaps::Kind::kTarget ? "output token read" : "source token";
  if (maps.kind == AttentionMaps::Kind::kTarget) {  // the decoder reads BOS y1 ... yT
    e.keys.pop_back();
    Item begin;
    begin.text = context.target.piece(kBegin);
    e.keys.insert(e.keys.begin(), begin);
  }
  const at::Tensor weights = maps.weights.to(at::kCPU, at::kFloat).contiguous();
  const int64_t layers = weights.size(0), heads = weights.size(1),
                cells = weights.size(2) * weights.size(3);
  e.layers = {"layer", numbered("", layers)};
  e.heads = {"head", numbered("", heads)};
  for (int64_t l = 0; l < layers; ++l) {
    for (int64_t h = 0; h < heads; ++h) {
      const float* first = weights.const_data_ptr<float>() + (l * heads + h) * cells;
      e.maps.push_back({static_cast<int>(l), static_cast<int>(h), {first, first + cells}, {}});
    }
  }
  if (cross && !pair.links.possible.empty()) {
    e.truth = explain::Truth{"true alignment",
                             {},
                             token_links(pair.links.sure, tokens),
                             token_links(pair.links.possible, tokens)};
  }
  e.plots = maps.plots;
  if (std::any_of(e.queries.begin(), e.queries.end(), goes_on) ||
      std::any_of(e.keys.begin(), e.keys.end(), goes_on))
    e.notes.push_back(
        "A dot stands before a piece that goes on with the word before it: rare words are written "
        "in pieces.");
  choose_head(e);
  return e;
}

Explanation beam_picture(const PictureContext& context, const nn::SearchResult& result,
                         const std::string& outcome) {
  using State = explain::TreeNode::State;
  Explanation e;
  e.system = context.system;
  e.title = "Beam search";
  e.view = explain::View::kTree;
  e.score = "log P(y) / ((5 + |y|) / 6)^α";
  e.normaliser = "top k";
  e.structure = "the beam";
  e.scale = "log-probability";
  e.outcome = outcome;
  for (const nn::BeamNode& node : result.tree) {
    State state = State::kLive;
    if (node.fate == nn::BeamNode::Fate::kPruned) state = State::kPruned;
    if (node.fate == nn::BeamNode::Fate::kFinished) state = State::kFinished;
    e.tree.push_back({static_cast<int>(node.parent), context.target.piece(node.token),
                      node.log_probability, state});
  }
  // The best: the finished node whose log-probability is the chosen hypothesis's.
  if (!result.n_best.empty()) {
    for (explain::TreeNode& node : e.tree) {
      if (node.state == State::kFinished && node.score == result.n_best[0].log_probability) {
        node.state = State::kBest;
        break;
      }
    }
  }
  return e;
}

}  // namespace fovea::translate
