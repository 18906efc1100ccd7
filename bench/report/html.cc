// The page of a run: plain SVG in one file, so that it opens anywhere and prints.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "bench/report/report.h"

namespace fovea::bench {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Fovea: benchmark</title>
<style>
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #6a737d; --paper: #fff; --line: #d8dee4; --ours: #0b7285; --peer: #b0b8c1;
  --good: #2b8a3e; --bad: #c92a2a; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9aa4af; --paper: #0f1419; --line: #2d3640; --ours: #3bc9db;
  --peer: #57606a; --good: #51cf66; --bad: #ff8787; } }
body { margin: 2rem auto; max-width: 64rem; padding: 0 1rem; font: 15px/1.5 system-ui, sans-serif; color: var(--ink);
  background: var(--paper); }
h1, h2 { font-weight: 600; } p, li { color: var(--dim); } figure { margin: 1rem 0; overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; width: 100%; } .scroll { overflow-x: auto; }
td, th { padding: .2rem .5rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
td:first-child, th:first-child, td:last-child, th:last-child { text-align: left; }
.met { color: var(--good); } .missed { color: var(--bad); } svg text { fill: var(--ink); font: 12px system-ui, sans-serif; }
svg .dim { fill: var(--dim); } .ours { fill: var(--ours); } .peer { fill: var(--peer); } .axis { stroke: var(--line); }
.predicted { stroke: var(--dim); stroke-dasharray: 4 4; fill: none; } .measured { stroke: var(--ours); fill: none; stroke-width: 2; }
</style></head><body>
)";

std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

// One line for each row: our time as a fraction of the best peer's, both from the same zero.
std::string bars(const Report& report) {
  std::vector<const Measured*> rows;
  double longest = 1;
  for (const RowReport& row : report.rows) {
    if (row.measured.best_peer.empty()) continue;
    rows.push_back(&row.measured);
    longest = std::max(longest, row.measured.times_peer);
  }
  if (rows.empty()) return "";
  constexpr double kLeft = 330, kWidth = 480, kStep = 22;
  // Ratios run from below 1 to 100 and more: a logarithmic length, from a quarter.
  const auto length = [&](double ratio) {
    return kWidth *
           std::clamp(std::log(std::max(ratio, 0.25) * 4) / std::log(longest * 4), 0.0, 1.0);
  };
  const double height = kStep * static_cast<double>(rows.size()) + 30;
  std::string svg = fmt::format(
      "<figure><svg role=\"img\" aria-label=\"times faster than the best peer\" width=\"{}\" "
      "height=\"{}\" viewBox=\"0 0 {} {}\">\n",
      kLeft + kWidth + 190, height, kLeft + kWidth + 190, height);
  for (double tick : {0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0}) {
    if (tick > longest) break;
    const double x = kLeft + length(tick);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"18\" y2=\"{1:.0f}\"/>"
        "<text class=\"dim\" x=\"{0:.1f}\" y=\"12\" text-anchor=\"middle\">{2:g}x</text>\n",
        x, height, tick);
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    const Measured& m = *rows[i];
    const double y = 24 + kStep * static_cast<double>(i);
    svg += fmt::format("<text x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>", kLeft - 8,
                       y + 11, escaped(m.name));
    svg += fmt::format(
        "<rect class=\"{}\" x=\"{:.0f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"14\"/>",
        m.times_peer >= 1 ? "ours" : "peer", kLeft, y, std::max(1.0, length(m.times_peer)));
    svg +=
        fmt::format("<text class=\"dim\" x=\"{:.1f}\" y=\"{:.1f}\">{:.2f}x {}</text>\n",
                    kLeft + length(m.times_peer) + 6, y + 11, m.times_peer, escaped(m.best_peer));
  }
  return svg + "</svg></figure>\n";
}

struct Point {
  double n, value;
};

// Points of a series on log axes, and a dashed line of the predicted slope through the last.
std::string log_chart(const std::string& title, std::vector<Point> points, double slope,
                      const std::string& unit) {
  if (points.size() < 2) return "";
  std::sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.n < b.n; });
  constexpr double kLeft = 70, kTop = 30, kWidth = 300, kHeight = 200;
  const Point last = points.back();
  const auto predicted = [&](double n) { return last.value * std::pow(n / last.n, slope); };
  double low = predicted(points.front().n), high = last.value;
  for (const Point& p : points) low = std::min(low, p.value), high = std::max(high, p.value);
  const auto x = [&](double n) {
    return kLeft + kWidth * std::log(n / points.front().n) / std::log(last.n / points.front().n);
  };
  const auto y = [&](double v) {
    return kTop + kHeight * (1 - std::log(v / low) / std::log(std::max(high / low, 1.0001)));
  };
  std::string svg = fmt::format(
      "<svg role=\"img\" aria-label=\"{0}\" width=\"400\" height=\"270\" viewBox=\"0 0 400 270\">"
      "<text x=\"{1}\" y=\"16\">{0}</text>\n",
      escaped(title), kLeft);
  svg += fmt::format(
      "<line class=\"axis\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/><line class=\"axis\" "
      "x1=\"{0}\" "
      "x2=\"{3}\" y1=\"{2}\" y2=\"{2}\"/>\n",
      kLeft, kTop, kTop + kHeight, kLeft + kWidth);
  svg += fmt::format(
      "<line class=\"predicted\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
      x(points.front().n), y(predicted(points.front().n)), x(last.n), y(last.value));
  std::string line;
  for (const Point& p : points) {
    line += fmt::format("{:.1f},{:.1f} ", x(p.n), y(p.value));
    svg += fmt::format(
        "<circle class=\"ours\" cx=\"{0:.1f}\" cy=\"{1:.1f}\" r=\"3\"><title>n {2:g}: {3:.3g} "
        "{4}</title></circle>"
        "<text class=\"dim\" x=\"{0:.1f}\" y=\"{5:.0f}\" text-anchor=\"middle\">{2:g}</text>\n",
        x(p.n), y(p.value), p.n, p.value, unit, kTop + kHeight + 16);
  }
  svg += fmt::format("<polyline class=\"measured\" points=\"{}\"/>\n", line);
  for (double v : {low, high}) {
    svg += fmt::format(
        "<text class=\"dim\" x=\"{:.0f}\" y=\"{:.1f}\" text-anchor=\"end\">{:.3g} {}</text>\n",
        kLeft - 6, y(v) + 4, v, unit);
  }
  return svg + "</svg>\n";
}

std::string series_charts(const Report& report) {
  std::map<std::string, std::vector<const RowReport*>> series;
  for (const RowReport& row : report.rows) {
    if (row.series) series[row.series->name].push_back(&row);
  }
  std::string html;
  for (const auto& [title, rows] : series) {
    std::vector<Point> time, memory;
    for (const RowReport* row : rows) {
      if (row->measured.rounds > 0) time.push_back({row->series->n, row->measured.milliseconds});
      if (row->measured.memory.value_or(0) > 0)
        memory.push_back({row->series->n, *row->measured.memory / 1e6});
    }
    html += "<figure>" + log_chart(title + ": time", time, rows[0]->series->time_slope, "ms") +
            log_chart(title + ": peak extra memory", memory, rows[0]->series->memory_slope, "MB") +
            "</figure>\n";
  }
  return html;
}

std::string row_table(const Report& report) {
  std::string html =
      "<div "
      "class=\"scroll\"><table><tr><th>row</th><th>ms</th><th>&#177;%</th><th>gflops</th><th>gbps</"
      "th><th>x_peer</th>"
      "<th>pct_roof</th><th>memory</th><th>peer's</th><th>figures</th></tr>\n";
  for (const RowReport& row : report.rows) {
    const Measured& m = row.measured;
    const auto cell = [](bool present, const std::string& text) {
      return "<td>" + (present ? text : "") + "</td>";
    };
    html += "<tr><td>" + escaped(m.name) + "</td>" +
            cell(m.rounds > 0, fmt::format("{:.3f}", m.milliseconds)) +
            cell(m.rounds > 0, fmt::format("{:.0f}", 100 * m.spread)) +
            cell(m.gflops > 0, fmt::format("{:.1f}", m.gflops)) +
            cell(m.gbps > 0, fmt::format("{:.1f}", m.gbps)) +
            cell(!m.best_peer.empty(), fmt::format("{:.2f}", m.times_peer)) +
            cell(m.percent_roof > 0, fmt::format("{:.0f} of {}", m.percent_roof, m.roof)) +
            cell(m.memory.has_value(), megabytes(m.memory.value_or(0))) +
            cell(m.peer_memory.has_value(), megabytes(m.peer_memory.value_or(0))) + "<td>";
    for (const Judged& figure : row.figures) {
      const bool judged = figure.verdict.has_value();
      html += fmt::format("<div class=\"{}\">{} {}{}</div>",
                          !judged               ? ""
                          : figure.verdict->met ? "met"
                                                : "missed",
                          !judged               ? "?"
                          : figure.verdict->met ? "&#10003;"
                                                : "&#10007;",
                          escaped(figure.figure),
                          judged ? fmt::format(": {:.3g}", figure.verdict->value) : "");
    }
    html += "</td></tr>\n";
  }
  return html + "</table></div>\n";
}

}  // namespace

std::string to_html(const Report& report) {
  const Machine& m = report.machine;
  std::string html = kHead;
  html += fmt::format(
      "<h1>Fovea: {} of {} figures reached</h1>\n<p>{}, {} cores, {:.0f} GB; {} {}; libtorch {}; "
      "{} threads on "
      "both sides, {} caches; load {:.2f} at the start.</p>\n<p>",
      report.met(), report.met() + report.missed(), escaped(m.processor), m.cores, m.memory_gb,
      m.simd_target, m.bf16, m.libtorch, report.threads, report.cache, m.load);
  for (Roof roof : kRoofs) {
    const auto it = report.roofs.find(name(roof));
    if (it != report.roofs.end() && it->second > 0)
      html += fmt::format("{} {:.1f} {}. ", name(roof), it->second, unit(roof));
  }
  html += "</p>\n<h2>Times faster than the best peer</h2>\n" + bars(report);
  html += "<h2>Growth with n</h2>\n<p>Dashed: the predicted slope through the last point.</p>\n" +
          series_charts(report);
  html += "<h2>Rows</h2>\n" + row_table(report);
  return html + "</body></html>\n";
}

}  // namespace fovea::bench
