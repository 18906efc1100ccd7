// The description of a system; for a run, its learning curves (from its log) and its pictures.
#include <map>

#include "data/files/json.h"
#include "systems/pages/published.h"
#include "systems/run/naming.h"
#include "systems/run/provenance.h"
#include "systems/run/run_config.h"
#include "systems/run/session.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

struct History {
  explain::Curve loss{.label = "training loss"};
  std::map<std::string, explain::Curve> validation;  // by metric
};

// The numbers of metrics.jsonl against the epoch.
History history(const std::string& lines) {
  History out;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    const Json line = data::json_in(std::string_view(lines).substr(at, end - at));
    at = end == std::string::npos ? lines.size() : end + 1;
    const auto number = [](const Json& from, const char* name) {
      return from.is_object() && from.contains(name) && from[name].is_number();
    };
    if (!number(line, "epoch") || !number(line, "loss")) continue;
    const double epoch = line.at("epoch");
    out.loss.x.push_back(epoch);
    out.loss.y.push_back(line.at("loss"));
    const Json validation = line.value("validation", Json::object());
    if (!validation.is_object()) continue;
    for (const auto& [name, value] : validation.items()) {
      if (!value.is_number()) continue;
      explain::Curve& curve = out.validation[name];
      curve.label = "validation " + name;
      curve.x.push_back(epoch);
      curve.y.push_back(value);
    }
  }
  return out;
}

}  // namespace

std::optional<explain::Explanation> learning(const Run& run) {
  if (!run.folder->has("metrics.jsonl")) return std::nullopt;
  History found = history(run.folder->read("metrics.jsonl"));
  if (found.loss.x.size() < 2) return std::nullopt;  // one epoch is a point, not a curve
  explain::Explanation out;
  out.system = run.system->info.name;
  out.title = "How it learned";
  out.view = explain::View::kCurve;
  explain::Plot& losses = out.plots.emplace_back();
  losses.title = "Loss";
  losses.x_label = "epoch";
  losses.y_label = "loss";
  losses.curves.push_back(found.loss);
  const auto loss = found.validation.find("loss");
  if (loss != found.validation.end()) losses.curves.push_back(loss->second);
  // Accuracy says more than the metric that may have chosen the weights: a loss, or a count in gat.
  const std::string metric = found.validation.contains("accuracy") ? "accuracy"
                             : run.system->recipe ? run.run_options->options.text("monitor")
                                                  : "";
  const auto monitored = found.validation.find(metric);
  if (monitored != loss && monitored != found.validation.end()) {
    explain::Plot& plot = out.plots.emplace_back();
    plot.title = "Validation " + monitored->first;
    plot.x_label = "epoch";
    plot.y_label = monitored->first;
    plot.curves.push_back(monitored->second);
  }
  return out;
}

std::vector<explain::Explanation> explain(Run& run, Input* input) {
  const torch::NoGradGuard guard;
  // Without an input the pictures show items of the run's own test split.
  std::string note;
  if (!input) {
    const std::string sum = read_items(run, source_of(run.config));
    const std::string split = run.folder->has(kSplitFile) ? run.folder->read(kSplitFile) : "";
    note = check_own_data(run.config, split, *run.task, Split::kTest, sum);
  }
  const auto explained = [&] { return run.task->explain(input); };
  std::vector<explain::Explanation> out =
      input ? explained() : naming(run.folder->path(), explained);
  if (!note.empty() && !out.empty()) out.front().notes.push_back(note);
  for (explain::Explanation& one : out) one.system = run.system->info.name;
  return out;
}

Json describe(const System& system) {
  const Info& info = system.info;
  Json options = Json::array();
  const OptionValues option_values = system.option_values();
  const Json defaults = option_values.json();
  for (const Option& option : option_values.declared())
    options.push_back({{"name", option.name},
                       {"default", defaults.at(option.name)},
                       {"type", option.describe_type()},
                       {"help", option.help}});
  return {{"name", info.name},
          {"number", info.number},
          {"title", info.title},
          {"paper", info.paper},
          {"idea", info.idea},
          {"equation", info.equation},
          {"code", info.code},
          {"query", info.triple.query},
          {"key", info.triple.key},
          {"value", info.triple.value},
          {"score", info.triple.score},
          {"normaliser", info.triple.normaliser},
          {"structure", info.triple.structure},
          {"data", info.formats},
          {"expect", info.expect},
          {"published", published_figure(info.name)},
          {"tour", system.tour},
          {"options", options}};
}

}  // namespace fovea::systems
