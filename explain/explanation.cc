#include "explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fovea/error.h"

namespace fovea::explain {
namespace {

// A browser cannot draw more than this. The limits also bound the memory that a hostile file can
// make us allocate.
constexpr size_t kMostItems = 1'000'000;
constexpr size_t kMostCells = 16'000'000;
constexpr size_t kMostNames = 4096;

[[noreturn]] void refuse(const std::string& field, const std::string& what) {
  throw InvalidArgument(field + ": " + what);
}

void check_count(const std::string& field, size_t count, size_t most) {
  if (count > most) refuse(field, fmt::format("{} entries, at most {} allowed", count, most));
}

void check_index(const std::string& field, int64_t index, size_t count) {
  if (index < 0 || index >= static_cast<int64_t>(count))
    refuse(field,
           fmt::format("index {}, expected 0 to {}", index, static_cast<int64_t>(count) - 1));
}

void check_optional_index(const std::string& field, int64_t index, size_t count) {
  if (index != -1) check_index(field, index, count);
}

template <class Number>
void check_finite(const std::string& field, const std::vector<Number>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i)
    if (!std::isfinite(numbers[i])) refuse(fmt::format("{}[{}]", field, i), "not a finite number");
}

void check_finite(const std::string& field, double number) {
  if (!std::isfinite(number)) refuse(field, "not a finite number");
}

void check_picture(const std::string& field, const Picture& p) {
  if (p.width < 1 || p.height < 1 || p.width > 4096 || p.height > 4096)
    refuse(field, fmt::format("{} × {} pixels, expected 1 to 4096 each way", p.width, p.height));
  if (p.channels != 1 && p.channels != 3)
    refuse(field + ".channels", fmt::format("{}, expected 1 or 3", p.channels));
  const size_t expected = size_t(p.width) * p.height * p.channels;
  if (p.pixels.size() != expected)
    refuse(field + ".pixels", fmt::format("{} bytes, expected {} ({} × {} × {})", p.pixels.size(),
                                          expected, p.height, p.width, p.channels));
}

void check_items(const std::string& field, const std::vector<Item>& items, size_t groups) {
  check_count(field, items.size(), kMostItems);
  for (size_t i = 0; i < items.size(); ++i) {
    const Item& item = items[i];
    const std::string at = fmt::format("{}[{}]", field, i);
    check_optional_index(at + ".group", item.group, groups);
    const size_t n = item.position.size();
    if (n != 0 && n != 2 && n != 4)
      refuse(at + ".position", fmt::format("{} numbers, expected 0, 2 or 4", n));
    check_finite(at + ".position", item.position);
    if (item.value) check_finite(at + ".value", *item.value);
    if (item.picture) check_picture(at + ".picture", *item.picture);
  }
}

void check_links(const std::string& field, const std::vector<Link>& links, const Explanation& e) {
  check_count(field, links.size(), kMostCells);
  for (size_t i = 0; i < links.size(); ++i) {
    const auto at = [&](const char* member) { return fmt::format("{}[{}].{}", field, i, member); };
    if (links[i].query < 0 || size_t(links[i].query) >= e.queries.size())
      check_index(at("query"), links[i].query, e.queries.size());
    if (links[i].key < 0 || size_t(links[i].key) >= e.keys.size())
      check_index(at("key"), links[i].key, e.keys.size());
    if (!std::isfinite(links[i].weight)) refuse(at("weight"), "not a finite number");
  }
}

void check_dense(const std::string& field, const std::vector<float>& dense, const Explanation& e) {
  const size_t expected = e.queries.size() * e.keys.size();
  if (dense.size() != expected)
    refuse(field, fmt::format("{} weights, expected {} ({} queries × {} keys)", dense.size(),
                              expected, e.queries.size(), e.keys.size()));
  check_count(field, dense.size(), kMostCells);
  check_finite(field, dense);
}

void check_axis(const std::string& field, const Axis& axis) {
  if (axis.names.empty()) refuse(field + ".names", "empty, expected at least one name");
  check_count(field + ".names", axis.names.size(), kMostNames);
  check_index(field + ".chosen", axis.chosen, axis.names.size());
}

void check_maps(const Explanation& e) {
  const size_t layers = e.layers.names.size(), heads = e.heads.names.size();
  check_count("maps", e.maps.size(), layers * heads);
  std::vector<bool> seen(layers * heads);
  size_t cells = 0;
  for (size_t i = 0; i < e.maps.size(); ++i) {
    const Map& map = e.maps[i];
    const std::string at = fmt::format("maps[{}]", i);
    check_index(at + ".layer", map.layer, layers);
    check_index(at + ".head", map.head, heads);
    if (seen[map.layer * heads + map.head])
      refuse(at, fmt::format("a second map of layer {}, head {}", map.layer, map.head));
    seen[map.layer * heads + map.head] = true;
    if (!map.dense.empty() && !map.links.empty())
      refuse(at, "both dense and links given, expected one");
    if (!map.dense.empty()) check_dense(at + ".dense", map.dense, e);
    check_links(at + ".links", map.links, e);
    cells += map.dense.size() + map.links.size();
    check_count("maps", cells, kMostCells);
  }
}

void check_plot(const std::string& field, const Plot& plot) {
  const size_t steps = plot.slider ? plot.slider->values.size() : 0;
  if (plot.slider) {
    check_count(field + ".slider.values", steps, kMostNames);
    check_finite(field + ".slider.values", plot.slider->values);
    check_index(field + ".slider.chosen", plot.slider->chosen, steps);
  }
  for (size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    const std::string at = fmt::format("{}.curves[{}]", field, i);
    check_count(at + ".x", curve.x.size(), kMostItems);
    check_finite(at + ".x", curve.x);
    const auto same = [&](const char* member, size_t count) {
      if (count != curve.x.size())
        refuse(at + member,
               fmt::format("{} entries, expected {} (as many as x)", count, curve.x.size()));
    };
    same(".y", curve.y.size());
    for (double y : curve.y)
      if (std::isinf(y)) refuse(at + ".y", "infinite, expected finite numbers or gaps");
    if (curve.kind == Curve::Kind::kBand) same(".upper", curve.upper.size());
    check_finite(at + ".upper", curve.upper);
    if (!curve.names.empty()) same(".names", curve.names.size());
    check_optional_index(at + ".step", curve.step, steps);
  }
  for (size_t i = 0; i < plot.markers.size(); ++i) {
    const std::string at = fmt::format("{}.markers[{}]", field, i);
    check_finite(at + ".x", plot.markers[i].x);
    check_optional_index(at + ".step", plot.markers[i].step, steps);
  }
}

void check_table(const std::string& field, const Table& table, size_t queries) {
  check_optional_index(field + ".query", table.query, queries);
  for (size_t i = 0; i < table.rows.size(); ++i)
    if (table.rows[i].size() != table.columns.size())
      refuse(fmt::format("{}.rows[{}]", field, i),
             fmt::format("{} cells, expected {} (one per column)", table.rows[i].size(),
                         table.columns.size()));
}

// Numbers of a known count, each finite.
void check_numbers(const std::string& field, const std::vector<float>& numbers, size_t expected) {
  if (numbers.size() != expected)
    refuse(field, fmt::format("{} numbers, expected {}", numbers.size(), expected));
  check_finite(field, numbers);
}

// The width after the layers, of `width` numbers.
size_t check_layers(const std::string& field, const std::vector<Layer>& layers, size_t width) {
  for (size_t i = 0; i < layers.size(); ++i) {
    const std::string at = fmt::format("{}[{}]", field, i);
    check_numbers(at + ".weight", layers[i].weight, layers[i].bias.size() * width);
    check_finite(at + ".bias", layers[i].bias);
    width = layers[i].bias.size();
  }
  return width;
}

void check_reader(const std::string& field, const Reader& reader, const Shuffle& shuffle) {
  check_finite(field + ".shift", reader.shift);
  check_finite(field + ".given", reader.given);
  if (reader.kind == Reader::Kind::kDrawn) {
    if (reader.answers.empty() || reader.answers.size() != shuffle.orders.size())
      refuse(field + ".answers", fmt::format("{} numbers, expected {} (one an order)",
                                             reader.answers.size(), shuffle.orders.size()));
    return check_finite(field + ".answers", reader.answers);
  }
  auto width = static_cast<size_t>(shuffle.width);
  if (reader.kind == Reader::Kind::kGru) {
    if (!reader.gru) refuse(field + ".gru", "missing, this reader is one");
    const size_t gates = reader.gru->hidden_bias.size(), state = gates / 3;
    check_numbers(field + ".gru.hidden_bias", reader.gru->hidden_bias, 3 * state);
    check_numbers(field + ".gru.input_bias", reader.gru->input_bias, gates);
    check_numbers(field + ".gru.input_weight", reader.gru->input_weight, gates * width);
    check_numbers(field + ".gru.hidden_weight", reader.gru->hidden_weight, gates * state);
    width = state;
  }
  width = check_layers(field + ".layers", reader.layers, width);
  if (shuffle.chosen == -1 && width != 1)
    refuse(field + ".layers", fmt::format("{} numbers at the end, expected 1", width));
  check_optional_index("shuffle.chosen", shuffle.chosen, width);
}

void check_shuffle(const Shuffle& shuffle, size_t members) {
  if (members == 0) refuse("keys", "empty, a shuffle needs members");
  if (shuffle.width < 1)
    refuse("shuffle.width", fmt::format("{}, expected at least 1", shuffle.width));
  check_count("shuffle.vectors", shuffle.vectors.size(), kMostCells);
  check_numbers("shuffle.vectors", shuffle.vectors, members * static_cast<size_t>(shuffle.width));
  check_count("shuffle.orders", shuffle.orders.size(), kMostNames);
  for (size_t i = 0; i < shuffle.orders.size(); ++i) {
    const std::string at = fmt::format("shuffle.orders[{}]", i);
    std::vector<bool> seen(members);
    for (const int member : shuffle.orders[i]) {
      check_index(at, member, members);
      seen[static_cast<size_t>(member)] = true;
    }
    if (shuffle.orders[i].size() != members || std::count(seen.begin(), seen.end(), false))
      refuse(at, fmt::format("expected each of 0 to {} once", static_cast<int64_t>(members) - 1));
  }
  if (shuffle.readers.empty()) refuse("shuffle.readers", "empty, expected at least one");
  check_count("shuffle.readers", shuffle.readers.size(), kMostNames);
  for (size_t i = 0; i < shuffle.readers.size(); ++i)
    check_reader(fmt::format("shuffle.readers[{}]", i), shuffle.readers[i], shuffle);
}

bool draws_weights(View view) {
  return view != View::kCurve && view != View::kTree && view != View::kShuffle;
}

// The parts without which a view cannot be drawn.
void check_view(const Explanation& e) {
  const bool weights = draws_weights(e.view);
  if (weights && e.maps.empty()) refuse("maps", "empty, this view draws weights");
  if (e.view == View::kCurve && e.plots.empty()) refuse("plots", "empty, a curve view draws plots");
  if (e.view == View::kTree && e.tree.empty()) refuse("tree", "empty, a tree view draws it");
  if (e.view == View::kShuffle && !e.shuffle) refuse("shuffle", "missing, a shuffle view draws it");
  if (e.view == View::kImage) {
    if (!e.picture) refuse("picture", "missing, an image view draws over it");
    for (size_t i = 0; i < e.keys.size(); ++i)
      if (e.keys[i].position.size() != 4)
        refuse(fmt::format("keys[{}].position", i), "expected x, y, width, height of the region");
  }
}

}  // namespace

void check(const Explanation& e) {
  if (e.title.empty()) refuse("title", "empty");
  if (draws_weights(e.view) && e.normaliser.empty())
    refuse("normaliser", "empty, every picture of weights names it");
  check_count("groups", e.groups.size(), kMostItems);
  for (size_t i = 0; i < e.groups.size(); ++i)
    if (e.groups[i].weight) check_finite(fmt::format("groups[{}].weight", i), *e.groups[i].weight);
  check_items("queries", e.queries, e.groups.size());
  check_items("keys", e.keys, e.groups.size());
  check_axis("layers", e.layers);
  check_axis("heads", e.heads);
  check_maps(e);
  if (e.truth) {
    if (!e.truth->dense.empty()) check_dense("truth.dense", e.truth->dense, e);
    check_links("truth.sure", e.truth->sure, e);
    check_links("truth.possible", e.truth->possible, e);
  }
  if (e.picture) check_picture("picture", *e.picture);
  check_count("plots", e.plots.size(), kMostNames);
  for (size_t i = 0; i < e.plots.size(); ++i) check_plot(fmt::format("plots[{}]", i), e.plots[i]);
  check_count("tables", e.tables.size(), kMostItems);
  for (size_t i = 0; i < e.tables.size(); ++i)
    check_table(fmt::format("tables[{}]", i), e.tables[i], e.queries.size());
  check_count("tree", e.tree.size(), kMostItems);
  for (size_t i = 0; i < e.tree.size(); ++i) {
    const std::string at = fmt::format("tree[{}]", i);
    check_finite(at + ".score", e.tree[i].score);
    if (e.tree[i].parent < -1 || e.tree[i].parent >= static_cast<int64_t>(i))
      refuse(at + ".parent", fmt::format("{}, expected -1 or an earlier node", e.tree[i].parent));
  }
  if (e.shuffle) check_shuffle(*e.shuffle, e.keys.size());
  check_view(e);
}

}  // namespace fovea::explain
