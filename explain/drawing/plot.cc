#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "explain/drawing/views.h"

namespace fovea::explain::drawing {
namespace {

constexpr double kHigh = 260, kBottom = 44, kTop = 10;

// One axis: numbers to places.
struct Scale {
  double low, high, from, to;
  bool log;
  double at(double value) const {
    const double v = log ? std::log10(value) : value;
    return from + (v - low) / (high - low) * (to - from);
  }
  std::vector<double> ticks() const {
    std::vector<double> out;
    if (log && high - low > 1) {
      for (double e = std::ceil(low - 1e-9); e <= high + 1e-9; ++e) out.push_back(std::pow(10, e));
      return out;
    }
    const double least = log ? std::pow(10, low) : low, most = log ? std::pow(10, high) : high;
    const double rough = (most - least) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    double step = 10 * power;
    for (const double k : {5.0, 2.0, 1.0})
      if (k * power >= rough) step = k * power;
    for (double k = std::ceil(least / step - 1e-9); k * step <= most + 1e-9 * step; ++k)
      out.push_back(k * step);
    return out;
  }
};

Scale scale(const std::vector<double>& values, bool log, double from, double to, double pad) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const double value : values) {
    if (!std::isfinite(value) || (log && value <= 0)) continue;
    low = std::min(low, log ? std::log10(value) : value);
    high = std::max(high, log ? std::log10(value) : value);
  }
  if (low > high) low = 0, high = 1;
  if (low == high) low -= 0.5, high += 0.5;
  const double margin = pad * (high - low);
  const bool at_zero = !log && low >= 0 && low - margin < 0;
  return {at_zero ? 0 : low - margin, high + margin, from, to, log};
}

std::vector<const Curve*> shown(const Plot& plot) {
  const int step = plot.slider ? plot.slider->chosen : -1;
  std::vector<const Curve*> out;
  for (const Curve& curve : plot.curves)
    if (curve.step == -1 || curve.step == step) out.push_back(&curve);
  return out;
}

// Names of points: to the right of its point, or to the left where the plot ends or another name
// stands; else in the nearest free place around it, with a line to the point. Where all are taken
// there is none: the most important come first.
class Names {
 public:
  Names(const Scale& x, const Scale& y) : x_(x), y_(y) {}
  std::string beside(double x, double y, const std::string& text) {
    constexpr int kTurns = 10;
    const std::string name = shortened(text, 20);
    for (const bool left : {false, true})
      if (take(x, y, name, left)) return written(x, y, name, left);
    for (const double radius : {16.0, 30.0, 44.0, 58.0, 72.0})
      for (int turn = 0; turn < kTurns; ++turn) {
        const double angle = 2 * std::numbers::pi * (turn + 0.5) / kTurns;
        const double to_x = x + radius * std::cos(angle), to_y = y + radius * std::sin(angle);
        const bool left = to_x < x;
        if (!take(to_x, to_y, name, left)) continue;
        return fmt::format(
                   "<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}\" stroke=\"#8c959f\" "
                   "stroke-opacity=\"0.6\"/>\n",
                   x, y, to_x + (left ? -3 : 3), to_y) +
               written(to_x, to_y, name, left);
      }
    return "";
  }

 private:
  static std::string written(double x, double y, const std::string& name, bool left) {
    return text_at(x + (left ? -5 : 5), y + 4, name, left ? Anchor::kEnd : Anchor::kStart,
                   "number");
  }
  bool take(double x, double y, const std::string& name, bool left) {
    const double wide = text_width(name) + 8;
    const Box box{left ? x - wide : x, left ? x : x + wide, y};
    if (box.from < x_.from || box.to > x_.to || y < y_.to + 5 || y > y_.from - 5) return false;
    for (const Box& other : taken_)
      if (std::abs(other.y - box.y) < 12 && other.from < box.to && box.from < other.to)
        return false;
    taken_.push_back(box);
    return true;
  }

  struct Box {
    double from, to, y;
  };
  const Scale &x_, &y_;
  std::vector<Box> taken_;
};

std::string curve_svg(const Curve& curve, const Scale& x, const Scale& y, const std::string& fill,
                      Names& names) {
  std::string out, path, back;
  bool begun = false;
  for (size_t i = 0; i < curve.x.size(); ++i) {
    const double px = x.at(curve.x[i]), py = y.at(curve.y[i]);
    if (!std::isfinite(px) || !std::isfinite(py)) {
      begun = false;
      continue;
    }
    if (curve.kind == Curve::Kind::kPoints) {
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" fill=\"{}\"/>\n", px, py,
                         curve.x.size() > 400 ? 1.4 : 2.8, fill);
      if (!curve.names.empty()) out += names.beside(px, py, curve.names[i]);
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", begun ? "L" : "M", px, py);
    begun = true;
    if (curve.kind == Curve::Kind::kBand)
      back = fmt::format("L{:.1f} {:.1f}", px, y.at(curve.upper[i])) + back;
  }
  if (curve.kind == Curve::Kind::kBand)
    return fmt::format("<path d=\"{}{}Z\" fill=\"{}\" fill-opacity=\"0.18\"/>\n", path, back, fill);
  if (!path.empty())
    out += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", path,
                       fill);
  return out;
}

std::string bars_svg(const std::vector<const Curve*>& bars, const Scale& x, const Scale& y,
                     double step, const std::vector<std::string>& labels) {
  std::string out;
  const double full = std::abs(x.at(step) - x.at(0)) * 0.86;
  const double wide = full / static_cast<double>(bars.size());
  for (size_t k = 0; k < bars.size(); ++k) {
    const size_t which = static_cast<size_t>(
        std::find(labels.begin(), labels.end(), bars[k]->label) - labels.begin());
    for (size_t i = 0; i < bars[k]->x.size(); ++i) {
      const double value = bars[k]->y[i];
      if (!std::isfinite(value)) continue;
      const double zero = y.log ? y.from : y.at(0), top = y.at(value);
      out += rectangle(x.at(bars[k]->x[i]) - full / 2 + wide * static_cast<double>(k),
                       std::min(zero, top), std::max(1.0, wide - 1), std::abs(zero - top),
                       category(which));
    }
  }
  return out;
}

// Bars that have names stand on them in place of numbers.
const Curve* bars_with_names(const Plot& plot) {
  for (const Curve& curve : plot.curves)
    if (curve.kind == Curve::Kind::kBars && !curve.names.empty()) return &curve;
  return nullptr;
}

}  // namespace

Piece plot(const Plot& plot, double wide) {
  std::vector<double> xs, ys;
  double bar_step = std::numeric_limits<double>::infinity();
  bool has_bars = false;
  std::vector<std::string> labels;
  for (const Curve& curve : plot.curves) {
    xs.insert(xs.end(), curve.x.begin(), curve.x.end());
    ys.insert(ys.end(), curve.y.begin(), curve.y.end());
    ys.insert(ys.end(), curve.upper.begin(), curve.upper.end());
    if (std::find(labels.begin(), labels.end(), curve.label) == labels.end())
      labels.push_back(curve.label);
    if (curve.kind != Curve::Kind::kBars) continue;
    has_bars = true;
    if (!plot.log_y) ys.push_back(0);
    for (size_t i = 1; i < curve.x.size(); ++i)
      bar_step = std::min(bar_step, std::abs(curve.x[i] - curve.x[i - 1]));
  }
  for (const Marker& marker : plot.markers) xs.push_back(marker.x);
  if (!std::isfinite(bar_step) || bar_step == 0) bar_step = 1;
  if (has_bars && !plot.log_x && !xs.empty()) {
    const auto [low, high] = std::minmax_element(xs.begin(), xs.end());
    const double first = *low - bar_step / 2, last = *high + bar_step / 2;
    xs.insert(xs.end(), {first, last});
  }
  const Scale y = scale(ys, plot.log_y, kHigh - kBottom, kTop, 0.06);
  double left = 34;
  for (const double tick : y.ticks()) left = std::max(left, 30 + text_width(number(tick)));
  const Scale x = scale(xs, plot.log_x, left, wide - 10, has_bars ? 0 : 0.02);
  std::string out;
  const Curve* lettered = bars_with_names(plot);
  if (lettered != nullptr) {
    const double room = (wide - 10 - left) / static_cast<double>(lettered->x.size());
    const auto letters = static_cast<size_t>(std::max(3.0, room / 7.5));
    for (size_t i = 0; i < lettered->x.size(); ++i)
      out += text_at(x.at(lettered->x[i]), kHigh - kBottom + 16,
                     shortened(lettered->names[i], letters), Anchor::kMiddle, "number");
  }
  for (const double tick : lettered != nullptr ? std::vector<double>{} : x.ticks())
    out += rectangle(x.at(tick) - 0.5, kTop, 1, kHigh - kBottom - kTop, "#eaeef2") +
           text_at(x.at(tick), kHigh - kBottom + 16, number(tick), Anchor::kMiddle, "number");
  for (const double tick : y.ticks())
    out += rectangle(left, y.at(tick) - 0.5, wide - 10 - left, 1, "#eaeef2") +
           text_at(left - 6, y.at(tick) + 4, number(tick), Anchor::kEnd, "number");
  out += text_at((left + wide) / 2, kHigh - 8, plot.x_label, Anchor::kMiddle, "label");
  out += fmt::format("<g transform=\"translate(12 {:.1f}) rotate(-90)\">{}</g>\n",
                     (kTop + kHigh - kBottom) / 2,
                     text_at(0, 0, plot.y_label, Anchor::kMiddle, "label"));
  std::vector<const Curve*> bars;
  std::vector<std::string> named;
  Names names(x, y);
  for (const Curve* curve : shown(plot)) {
    const size_t which =
        static_cast<size_t>(std::find(labels.begin(), labels.end(), curve->label) - labels.begin());
    if (std::find(named.begin(), named.end(), curve->label) == named.end())
      named.push_back(curve->label);
    if (curve->kind == Curve::Kind::kBars)
      bars.push_back(curve);
    else
      out += curve_svg(*curve, x, y, category(which), names);
  }
  if (!bars.empty()) out += bars_svg(bars, x, y, bar_step, labels);
  double line = kTop + 12;
  for (const Marker& marker : plot.markers) {
    if (marker.step != -1 && (!plot.slider || marker.step != plot.slider->chosen)) continue;
    const double at = x.at(marker.x);
    const bool end = at > wide * 0.7;
    out += rectangle(at - 0.5, kTop, 1, kHigh - kBottom - kTop, "#57606a") +
           text_at(at + (end ? -6 : 6), line, marker.label, end ? Anchor::kEnd : Anchor::kStart,
                   "label");
    line += kLine;
  }
  std::vector<Piece> parts;
  if (!plot.title.empty()) parts.push_back(paragraph(plot.title, wide, "title"));
  if (plot.slider)
    parts.push_back(paragraph(
        fmt::format("{} {}", plot.slider->label,
                    number(plot.slider->values[static_cast<size_t>(plot.slider->chosen)])),
        wide, "label"));
  if (labels.size() > 1) {
    Piece legend{.width = wide, .height = kLine};
    double at = 0;
    for (const std::string& label : named) {
      if (label.empty()) continue;
      const size_t which =
          static_cast<size_t>(std::find(labels.begin(), labels.end(), label) - labels.begin());
      const double room = 18 + text_width(label) + 14;
      if (at > 0 && at + room > wide) at = 0, legend.height += kLine;
      legend.svg += rectangle(at, legend.height - kLine + 3, 10, 10, category(which)) +
                    text_at(at + 15, legend.height - kLine + 12, label);
      at += room;
    }
    parts.push_back(legend);
  }
  parts.push_back({.width = wide, .height = kHigh, .svg = out});
  return stacked(parts, 6);
}

}  // namespace fovea::explain::drawing
