#include <fmt/format.h>

#include <algorithm>

#include "bench/report/report.h"

namespace fovea::bench {
namespace {

std::string machine_lines(const Report& r) {
  const Machine& m = r.machine;
  std::string text = fmt::format("{}, {} cores, {:.0f} GB, {}{}{}\n", m.processor, m.cores,
                                 m.memory_gb, m.simd_target, m.bf16.empty() ? "" : " + ", m.bf16);
  text += fmt::format(
      "libtorch {}, {}; {} threads on both sides, {} caches; load {:.2f} at the start\n",
      m.libtorch, m.compiler, r.threads, r.cache, m.load);
  text += "roofs:";
  for (Roof roof : kRoofs) {
    const auto it = r.roofs.find(name(roof));
    if (it != r.roofs.end() && it->second > 0)
      text += fmt::format(" {} {:.1f} {};", name(roof), it->second, unit(roof));
  }
  text.back() = '\n';
  text += r.two_wide_units ? "two 512-bit multiply-add units a core\n" : "";
  return text;
}

std::string or_dash(bool present, const std::string& text) { return present ? text : "-"; }

}  // namespace

std::string megabytes(double bytes) {
  return fmt::format("{:.{}f} MB", bytes / 1e6, bytes < 1e7 ? 2 : bytes < 1e8 ? 1 : 0);
}

std::string table(const Report& report) {
  size_t width = 20;
  for (const RowReport& row : report.rows) width = std::max(width, row.measured.name.size());
  std::string text = machine_lines(report);
  text += fmt::format("\n{:<{}} {:>9} {:>5} {:>8} {:>7} {:>8} {:>9} {:>10} {:>10}\n", "row", width,
                      "ms", "+-%", "gflops", "gbps", "x_peer", "pct_roof", "memory", "peer's");
  for (const RowReport& row : report.rows) {
    const Measured& m = row.measured;
    const bool timed = m.rounds > 0;
    text +=
        fmt::format("{:<{}} {:>9} {:>5} {:>8} {:>7} {:>8} {:>9} {:>10} {:>10}\n", m.name, width,
                    or_dash(timed, fmt::format("{:.3f}", m.milliseconds)),
                    or_dash(timed, fmt::format("{:.0f}", 100 * m.spread)),
                    or_dash(m.gflops > 0, fmt::format("{:.1f}", m.gflops)),
                    or_dash(m.gbps > 0, fmt::format("{:.1f}", m.gbps)),
                    or_dash(!m.best_peer.empty(), fmt::format("{:.2f}", m.times_peer)),
                    or_dash(m.percent_roof > 0, fmt::format("{:.0f} {}", m.percent_roof, m.roof)),
                    or_dash(m.memory.has_value(), megabytes(m.memory.value_or(0))),
                    or_dash(m.peer_memory.has_value(), megabytes(m.peer_memory.value_or(0))));
    for (const Judged& figure : row.figures) {
      const char* mark = !figure.verdict ? "?" : figure.verdict->met ? "\u2713" : "\u2717";
      text += fmt::format("  {} {}{}\n", mark, figure.figure,
                          figure.verdict ? fmt::format(": {:.3g}", figure.verdict->value)
                                         : std::string(": needs a row that was not run"));
    }
  }
  text += fmt::format("\n{} of {} figures reached\n", report.met(), report.met() + report.missed());
  return text;
}

}  // namespace fovea::bench
