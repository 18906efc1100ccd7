#include "systems/pages/lecture.h"

#include <fmt/format.h>

#include "explain/figure_words.h"
#include "systems/pages/equations.h"
#include "systems/pages/look.h"
#include "systems/pages/own_data.h"
#include "systems/pages/published.h"

namespace fovea::systems {
namespace {

constexpr const char* kAttention = "attention";

// Shares of the items themselves; others (F1, the recall of a class) are of something else.
bool is_share_of_items(const std::string& name) {
  return name == "accuracy" || name == "error" || name == "exact";
}

// "85.7 % (95 % interval 48.7 to 97.4 %, 7 items)".
std::string with_interval(const std::string& name, double value, int64_t items) {
  if (!is_share_of_items(name) || items < 1) return explain::figure_text(name, value);
  const Interval interval = interval_of(value, items);
  return fmt::format("{} (95 % interval {:.1f} to {:.1f} %, {} item{})",
                     explain::figure_text(name, value), 100 * interval.low, 100 * interval.high,
                     items, items == 1 ? "" : "s");
}

// What is to be expected was measured on the system's own data; of other data nothing is.
std::vector<explain::Figure> figures(const Run& run, const Json& report) {
  std::vector<explain::Figure> out;
  if (report.is_null()) return out;
  const bool own = !own_data(run.config).empty();
  for (const char* part : {"metrics", kAttention})
    for (const auto& [name, value] : report.at(part).items()) {
      // A figure of attention that is the system's own figure too stands once.
      if (part == kAttention && report.at("metrics").value(name, Json()) == value) continue;
      out.push_back({.name = explain::figure_name(name),
                     .reached = own ? with_interval(name, value.get<double>(),
                                                    report.value("items", int64_t{0}))
                                    : explain::figure_text(name, value.get<double>())});
    }
  if (!out.empty() && !own) {
    const std::string published = published_figure(run.system->info.name);
    out.front().expected = run.system->info.expect;
    if (!published.empty()) out.front().expected += ". The paper's figure: " + published;
  }
  return out;
}

// What a reader of the figures must know.
std::string notes_in_words(const Json& report) {
  std::string out;
  if (report.is_object())
    for (const Json& note : report.value("notes", Json::array()))
      out += fmt::format(" Note: {}.", note.get<std::string>());
  return out;
}

// Of a system that has several, the one of this run.
std::string task_of(const Run& run) {
  const Json& options = run.config.at("options");
  return options.contains("task") ? options.at("task").get<std::string>() : "";
}

}  // namespace

explain::Section lecture(const Run& run, std::vector<explain::Explanation> pictures,
                         const Json& report, const std::string& command) {
  if (auto learned = learning(run)) pictures.push_back(std::move(*learned));
  const Info& info = run.system->info;
  const bool own = !own_data(run.config).empty();
  return {.id = info.name,
          .title = info.title,
          .byline = info.paper,
          .prose = own ? own_words(run) + notes_in_words(report) + "\n\n" + general_idea(info.idea)
                       : info.idea,
          .look = own ? look_at_own(info.name, task_of(run)) : look_at(info.name, task_of(run)),
          .equation = mathml(info.equation),
          .code = info.code,
          .command = command,
          .figures = figures(run, report),
          .explanations = std::move(pictures)};
}

}  // namespace fovea::systems
