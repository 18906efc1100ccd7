// The fields of an Explanation's JSON, each named once; explanation_json.cc writes and reads
// through them.
#pragma once

#include "explain/explanation.h"

namespace fovea::explain {

inline constexpr const char* kFormat = "fovea-explanation";

template <class Enum>
struct Names;
template <>
struct Names<View> {
  static constexpr const char* kAll[] = {"bipartite", "matrix", "text",   "image", "graph",
                                         "bag",       "curve",  "memory", "tree",  "shuffle"};
};
template <>
struct Names<Curve::Kind> {
  static constexpr const char* kAll[] = {"line", "points", "band", "bars"};
};
template <>
struct Names<TreeNode::State> {
  static constexpr const char* kAll[] = {"live", "pruned", "finished", "best", "greedy"};
};

template <>
struct Names<Layer::Activation> {
  static constexpr const char* kAll[] = {"none", "tanh", "relu"};
};
template <>
struct Names<Reader::Kind> {
  static constexpr const char* kAll[] = {"sum", "max", "gru", "drawn"};
};

// `io(name, field)` is required; `io(name, field, absent)` is left out where the field equals
// `absent`.
template <class Io>
void describe(Io& io, Picture& p) {
  io("width", p.width), io("height", p.height), io("channels", p.channels, 1),
      io("pixels", p.pixels);
}
template <class Io>
void describe(Io& io, Item& item) {
  io("text", item.text), io("group", item.group, -1), io("position", item.position, {});
  io("value", item.value, {}), io("picture", item.picture, {});
}
template <class Io>
void describe(Io& io, Group& group) {
  io("name", group.name), io("weight", group.weight, {}), io("truth", group.truth, {});
}
template <class Io>
void describe(Io& io, Map& map) {
  io("layer", map.layer, 0), io("head", map.head, 0), io("dense", map.dense, {});
  io("links", map.links, {});
}
template <class Io>
void describe(Io& io, Truth& truth) {
  io("label", truth.label, {}), io("dense", truth.dense, {}), io("sure", truth.sure, {});
  io("possible", truth.possible, {});
}
template <class Io>
void describe(Io& io, Axis& axis) {
  io("label", axis.label), io("names", axis.names), io("chosen", axis.chosen, 0);
}
template <class Io>
void describe(Io& io, Curve& curve) {
  io("kind", curve.kind), io("label", curve.label, {}), io("x", curve.x), io("y", curve.y);
  io("upper", curve.upper, {}), io("names", curve.names, {}), io("step", curve.step, -1);
}
template <class Io>
void describe(Io& io, Marker& marker) {
  io("label", marker.label), io("x", marker.x), io("step", marker.step, -1);
}
template <class Io>
void describe(Io& io, Slider& slider) {
  io("label", slider.label), io("values", slider.values), io("chosen", slider.chosen, 0);
}
template <class Io>
void describe(Io& io, Plot& plot) {
  io("title", plot.title, {}), io("x_label", plot.x_label), io("y_label", plot.y_label);
  io("log_x", plot.log_x, false), io("log_y", plot.log_y, false), io("curves", plot.curves);
  io("markers", plot.markers, {}), io("slider", plot.slider, {});
}
template <class Io>
void describe(Io& io, Table& table) {
  io("title", table.title, {}), io("query", table.query, -1), io("columns", table.columns);
  io("rows", table.rows);
}
template <class Io>
void describe(Io& io, TreeNode& node) {
  io("parent", node.parent), io("text", node.text), io("score", node.score);
  io("state", node.state, TreeNode::State::kLive);
}
template <class Io>
void describe(Io& io, Shapes& shapes) {
  io("query", shapes.query), io("key", shapes.key), io("value", shapes.value);
  io("weights", shapes.weights), io("output", shapes.output);
}
template <class Io>
void describe(Io& io, Layer& layer) {
  io("weight", layer.weight), io("bias", layer.bias);
  io("activation", layer.activation, Layer::Activation::kNone);
}
template <class Io>
void describe(Io& io, Gru& gru) {
  io("input_weight", gru.input_weight), io("hidden_weight", gru.hidden_weight);
  io("input_bias", gru.input_bias), io("hidden_bias", gru.hidden_bias);
}
template <class Io>
void describe(Io& io, Reader& reader) {
  io("label", reader.label), io("kind", reader.kind), io("shift", reader.shift, 0);
  io("gru", reader.gru, {}), io("layers", reader.layers, {}), io("answers", reader.answers, {});
  io("given", reader.given);
}
template <class Io>
void describe(Io& io, Shuffle& shuffle) {
  io("answer", shuffle.answer), io("width", shuffle.width), io("vectors", shuffle.vectors);
  io("chosen", shuffle.chosen, -1), io("orders", shuffle.orders, {});
  io("readers", shuffle.readers);
}
template <class Io>
void describe(Io& io, Explanation& e) {
  std::string format = kFormat;
  int version = kVersion;
  io("format", format), io("version", version);
  io("system", e.system, {}), io("title", e.title), io("view", e.view), io("score", e.score, {});
  io("normaliser", e.normaliser, {}), io("structure", e.structure, {}), io("scale", e.scale, {});
  io("outcome", e.outcome, {}), io("notes", e.notes, {});
  io("query_label", e.query_label, "query"), io("key_label", e.key_label, "key");
  io("queries", e.queries, {}), io("keys", e.keys, {}), io("groups", e.groups, {});
  io("layers", e.layers), io("heads", e.heads), io("maps", e.maps, {}), io("truth", e.truth, {});
  io("picture", e.picture, {}), io("plots", e.plots, {}), io("tables", e.tables, {});
  io("tree", e.tree, {}), io("shapes", e.shapes, {}), io("shuffle", e.shuffle, {});
}

}  // namespace fovea::explain
