#include "bench/report/figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace fovea::bench {
namespace {

using Verdict = Figure::Verdict;

Verdict at_least(double value, double bound) { return {value, value >= bound}; }
Verdict at_most(double value, double bound) { return {value, value <= bound}; }

std::optional<double> lookup(const std::map<std::string, double>& values, const std::string& name) {
  const auto it = values.find(name);
  return it == values.end() ? std::nullopt : std::optional(it->second);
}

const Measured* find(const Context& context, const std::string& row) {
  const auto it = context.rows.find(row);
  return it == context.rows.end() ? nullptr : &it->second;
}

}  // namespace

Figure times_peer_at_least(double bound) {
  return {fmt::format("x_peer >= {:g}", bound),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            if (row.best_peer.empty()) return std::nullopt;
            return at_least(row.times_peer, bound);
          }};
}

Figure times_this_peer_at_least(double bound, const std::string& peer) {
  return {fmt::format("x {} >= {:g}", peer, bound),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            const auto times = lookup(row.times, peer);
            if (!times) return std::nullopt;
            return at_least(1 / *times, bound);
          }};
}

Figure percent_roof_at_least(double bound, double two_units) {
  const std::string text =
      bound == two_units
          ? fmt::format("pct_roof >= {:g}", bound)
          : fmt::format("pct_roof >= {:g} ({:g} with two wide units)", bound, two_units);
  return {text, [=](const Measured& row, const Context& context) -> std::optional<Verdict> {
            if (!(row.percent_roof > 0)) return std::nullopt;
            return at_least(row.percent_roof, context.two_wide_units ? two_units : bound);
          }};
}

Figure percent_roof_at_least(double bound) { return percent_roof_at_least(bound, bound); }

Figure times_peer_of_row_at_least(double factor, const std::string& other) {
  return {fmt::format("x_peer >= {:g} times that of {}", factor, other),
          [=](const Measured& row, const Context& context) -> std::optional<Verdict> {
            const Measured* reference = find(context, other);
            if (reference == nullptr || row.best_peer.empty() || reference->best_peer.empty())
              return std::nullopt;
            return at_least(row.times_peer / reference->times_peer, factor);
          }};
}

Figure times_yardstick_at_most(double bound, const std::string& yardstick) {
  return {fmt::format("time <= {:g} x {}", bound, yardstick),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            const auto times = lookup(row.times, yardstick);
            if (!times) return std::nullopt;
            return at_most(*times, bound);
          }};
}

Figure proportional_to(const std::string& yardstick, double tolerance) {
  return {fmt::format("time a pair within {:g} % of {}", 100 * tolerance, yardstick),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            const auto ratio = lookup(row.times_per_pair, yardstick);
            if (!ratio) return std::nullopt;
            return Verdict{*ratio, *ratio <= 1 + tolerance && *ratio >= 1 - tolerance};
          }};
}

Figure time_per_pair_at_most(double bound, const std::string& yardstick) {
  return {fmt::format("time a pair <= {:g} x {}", bound, yardstick),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            const auto ratio = lookup(row.times_per_pair, yardstick);
            if (!ratio) return std::nullopt;
            return at_most(*ratio, bound);
          }};
}

Figure no_cliff(double fraction, std::vector<std::string> neighbours) {
  return {fmt::format("pct_roof >= {:g} of its neighbours'", fraction),
          [=](const Measured& row, const Context& context) -> std::optional<Verdict> {
            double worst = INFINITY;
            for (const std::string& neighbour : neighbours) {
              const Measured* other = find(context, neighbour);
              if (other == nullptr) return std::nullopt;
              worst = std::min(worst, row.percent_roof / other->percent_roof);
            }
            return at_least(worst, fraction);
          }};
}

Figure times_row_at_most(double bound, const std::string& other) {
  return {fmt::format("time <= {:g} x that of {}", bound, other),
          [=](const Measured& row, const Context& context) -> std::optional<Verdict> {
            const Measured* reference = find(context, other);
            if (reference == nullptr) return std::nullopt;
            return at_most(row.milliseconds / reference->milliseconds, bound);
          }};
}

Figure memory_at_most(double bound) {
  return {fmt::format("memory <= {:g} x (query + key + value + output)", bound),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            if (!row.memory || row.tensor_bytes == 0) return std::nullopt;
            return at_most(*row.memory / row.tensor_bytes, bound);
          }};
}

Figure memory_bytes_at_most(double bytes, const std::string& why) {
  return {fmt::format("memory <= {:.1f} MB ({})", bytes / 1e6, why),
          [=](const Measured& row, const Context&) -> std::optional<Verdict> {
            if (!row.memory) return std::nullopt;
            return at_most(*row.memory / 1e6, bytes / 1e6);
          }};
}

}  // namespace fovea::bench
