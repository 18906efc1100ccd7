#include "explain/drawing/drawing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "explain/drawing/views.h"

namespace fovea::explain {
namespace {

using namespace drawing;

// Score, scale, normaliser, structure; layer and head where there are several. Then what is outlined.
std::string caption(const Explanation& e) {
  std::vector<std::string> parts;
  const auto say = [&](const std::string& name, const std::string& what) {
    if (!what.empty()) parts.push_back(name.empty() ? what : name + " " + what);
  };
  say("", e.system);
  say("score", e.score);
  say("scale", e.scale);
  say("normaliser", e.normaliser);
  say("structure", e.structure);
  for (const Axis* axis : {&e.layers, &e.heads})
    if (axis->names.size() > 1) say(axis->label, axis->names[static_cast<size_t>(axis->chosen)]);
  std::string out = fmt::format("{}", fmt::join(parts, " · "));
  if (e.truth)
    out += fmt::format("{}outlined: {}", out.empty() ? "" : ". ",
                       e.truth->label.empty() ? "the truth" : e.truth->label);
  return out;
}

// The set in its given order, and the answer of each model: shuffling needs a page.
Piece set_and_answers(const Explanation& e) {
  std::vector<Piece> out = {members(e)};
  for (const Reader& reader : e.shuffle->readers)
    out.push_back(paragraph(
        fmt::format("{}: {} {}", reader.label, e.shuffle->answer, number(reader.given)), kWidest));
  return stacked(out, 8);
}

// One query with several heads, where the page begins with all of them: a row for each head. Others
// are drawn as their pickers stand.
Explanation with_rows_of_heads(const Explanation& e) {
  const bool begins_with_all = e.view == View::kBipartite || e.view == View::kText;
  const bool dense =
      std::all_of(e.maps.begin(), e.maps.end(), [](const Map& map) { return !map.dense.empty(); });
  if (!begins_with_all || !dense || e.queries.size() != 1 || e.heads.names.size() < 2 ||
      e.layers.names.size() > 1 || !e.groups.empty())
    return e;
  Explanation out = e;
  out.queries.clear();
  out.maps = {{.layer = 0, .head = 0, .dense = {}, .links = {}}};
  for (size_t head = 0; head < e.heads.names.size(); ++head) {
    const auto map = std::find_if(e.maps.begin(), e.maps.end(), [&](const Map& one) {
      return one.head == static_cast<int>(head);
    });
    if (map == e.maps.end()) return e;
    out.queries.push_back({.text = fmt::format("{} {}", e.heads.label, e.heads.names[head])});
    out.maps[0].dense.insert(out.maps[0].dense.end(), map->dense.begin(), map->dense.end());
  }
  out.heads = {e.heads.label, {"all"}};
  if (!out.truth) return out;
  const std::vector<Link> sure = out.truth->sure;
  out.truth->sure.clear();
  for (size_t head = 0; head < e.heads.names.size(); ++head)
    for (const Link& link : sure)
      out.truth->sure.push_back({static_cast<int32_t>(head), link.key, link.weight});
  out.truth->possible.clear();
  out.truth->dense.clear();
  return out;
}

Piece view(const Explanation& e) {
  if (!e.tree.empty()) return tree(e.tree);
  if (e.shuffle) return set_and_answers(e);
  const bool weighed = !e.queries.empty() && !e.keys.empty() && !e.maps.empty();
  if (e.view == View::kCurve || !weighed) return {};
  if (!can_be_held(e)) return heat_map(e);
  if (e.view == View::kText) return words(e);
  if (e.view == View::kMemory) return memory(e);
  if (e.view == View::kBag) return strips(e);
  if (e.view == View::kGraph) return graph(e);
  if (e.view == View::kImage && e.picture) return regions(e);
  return heat_map(e);
}

// As on the page: a plot with a slider is the demonstration, and so is any where there are no
// weights, or too many columns of them to be named.
bool plots_lead(const Explanation& e) {
  constexpr size_t kMostNamed = 60;
  const bool slides = std::any_of(e.plots.begin(), e.plots.end(),
                                  [](const Plot& one) { return one.slider.has_value(); });
  return slides || e.view == View::kCurve ||
         (e.view == View::kMatrix && e.keys.size() > kMostNamed);
}

// Tables that go with queries are shown for one: that which the truth is about, or the first.
int asked_query(const Explanation& e) {
  return e.truth && !e.truth->sure.empty() ? e.truth->sure.front().query : 0;
}

// One stands alone; of several, two stand side by side. As on the page, the first of many tells the
// story: where it would leave a gap or has a slider, it has the whole width.
Piece plots(const std::vector<Plot>& given) {
  constexpr double kAlone = 520, kGap = 24;
  if (given.size() == 1) return plot(given[0], kAlone);
  std::vector<Piece> rows;
  const bool first = given.size() > 2 && (given.size() % 2 == 1 || given[0].slider);
  if (first) rows.push_back(plot(given[0], kWidest));
  for (size_t i = first ? 1 : 0; i < given.size(); i += 2) {
    std::vector<Piece> pair;
    for (size_t j = i; j < std::min(i + 2, given.size()); ++j)
      pair.push_back(plot(given[j], (kWidest - kGap) / 2));
    rows.push_back(beside(pair, kGap));
  }
  return stacked(rows, 20);
}

}  // namespace

std::string picture_svg(const Explanation& explanation) {
  check(explanation);
  const int asked = asked_query(explanation);
  std::vector<Piece> tables;
  for (const Table& one : explanation.tables)
    if (one.query == -1 || one.query == asked) tables.push_back(table(one));
  const bool lead = plots_lead(explanation);
  const Explanation shown = with_rows_of_heads(explanation);
  const Piece weights = view(shown), curves = plots(explanation.plots);
  const Piece drawn = lead ? stacked({curves, stacked(tables, 20), weights}, 20)
                           : stacked({weights, stacked(tables, 20), curves}, 20);
  const double width = std::max(drawn.width, 480.0);
  return document(
      stacked({paragraph(explanation.title, width, "title"), paragraph(explanation.outcome, width),
               drawn, paragraph(caption(shown), width, "label")}));
}

}  // namespace fovea::explain
