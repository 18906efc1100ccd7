// What there is to tell about a system or a run without computing anything.
#include <fmt/format.h>

#include <map>

#include "systems/session.h"
#include "train/run_folder.h"
#include "train/task.h"

namespace fovea::systems {
namespace {

// The numbers of metrics.jsonl against the epoch, one plot for the loss and one for the validation
// metrics.
std::vector<explain::Plot> learning_curves(const std::string& lines) {
  explain::Curve loss{.label = "training loss", .x = {}, .y = {}, .upper = {}, .names = {}};
  std::map<std::string, explain::Curve> validation;
  for (size_t at = 0; at < lines.size();) {
    const size_t end = lines.find('\n', at);
    const Json line = Json::parse(lines.substr(at, end - at));
    at = end == std::string::npos ? lines.size() : end + 1;
    if (!line.contains("epoch") || !line.contains("loss")) continue;
    const double epoch = line.at("epoch");
    loss.x.push_back(epoch);
    loss.y.push_back(line.at("loss"));
    if (!line.contains("validation")) continue;
    for (const auto& [name, value] : line.at("validation").items()) {
      explain::Curve& curve = validation[name];
      curve.label = name;
      curve.x.push_back(epoch);
      curve.y.push_back(value);
    }
  }
  std::vector<explain::Plot> plots;
  if (loss.x.empty()) return plots;
  explain::Plot losses;
  losses.title = "Learning";
  losses.x_label = "epoch";
  losses.y_label = "loss";
  losses.curves.push_back(loss);
  for (const auto& [name, curve] : validation) {
    if (name == "loss") {
      losses.curves.push_back(curve);
      losses.curves.back().label = "validation loss";
      continue;
    }
    explain::Plot plot;
    plot.title = "Validation " + name;
    plot.x_label = "epoch";
    plot.y_label = name;
    plot.curves.push_back(curve);
    plots.push_back(plot);
  }
  plots.insert(plots.begin(), losses);
  return plots;
}

}  // namespace

std::vector<explain::Explanation> explain(Run& run, Input* input) {
  const torch::NoGradGuard guard;
  // Without an input the pictures show items of the run's own test split.
  if (!input) {
    const Json& config = run.config;
    run.task->read({.path = config.at("data").is_null() ? "" : config.at("data").get<std::string>(),
                    .seed = config.at("data_seed"),
                    .fold = config.at("fold"),
                    .folds = config.at("folds")});
  }
  std::vector<explain::Explanation> out = run.task->explain(input);
  const train::RunFolder folder(run.folder);
  if (!out.empty() && folder.has("metrics.jsonl")) {
    const auto curves = learning_curves(folder.read("metrics.jsonl"));
    out.front().plots.insert(out.front().plots.end(), curves.begin(), curves.end());
  }
  for (explain::Explanation& one : out) one.system = run.system->info.name;
  return out;
}

Json describe(const System& system) {
  const Info& info = system.info;
  Json options = Json::array();
  const Settings settings = system.settings();
  const Json defaults = settings.json();
  for (const Option& option : settings.declared())
    options.push_back({{"name", option.name},
                       {"default", defaults.at(option.name)},
                       {"type", option.describe_type()},
                       {"help", option.help}});
  return {{"name", info.name},
          {"number", info.number},
          {"title", info.title},
          {"paper", info.paper},
          {"equation", info.equation_text},
          {"query", info.triple.query},
          {"key", info.triple.key},
          {"value", info.triple.value},
          {"score", info.triple.score},
          {"normaliser", info.triple.normaliser},
          {"structure", info.triple.structure},
          {"data", info.formats},
          {"expect", info.expect},
          {"options", options}};
}

}  // namespace fovea::systems
