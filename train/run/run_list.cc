#include "train/run/run_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "data/files/json.h"
#include "fovea/error.h"
#include "train/run/curves.h"
#include "train/run/run_folder.h"
#include "train/types.h"

namespace fovea::train {
namespace {

namespace fs = std::filesystem;

// The monitored metric at the end of the training.
std::string last_figure(const RunFolder& run, const Json& config) {
  if (!run.has("metrics.jsonl")) return {};
  const Curves curves = read_curves(run.read("metrics.jsonl"), (run / "metrics.jsonl").string());
  const std::string monitor = config.value("options", Json::object()).value("monitor", "loss");
  for (const std::string& name :
       {"validation/" + monitor, std::string("validation/loss"), std::string("loss")})
    if (const std::optional<double> value = curves.last(name)) {
      std::string words = name;
      std::replace(words.begin(), words.end(), '/', ' ');
      return fmt::format("{} {:.4g}", words, *value);
    }
  return {};
}

RunLine line_of(const fs::path& folder) {
  RunLine line{.folder = folder};
  try {
    const RunFolder run(folder);
    line.date = run.date();
    const Json config = data::parse_json(run.read("config.json"), (run / "config.json").string());
    line.system = config.at("system").get<std::string>();
    line.data = config.value("data", Json()).is_string() ? config.at("data").get<std::string>()
                                                         : "generated";
    line.figure = last_figure(run, config);
  } catch (const std::exception& error) {
    line.broken = error.what();
  }
  return line;
}

}  // namespace

std::vector<RunLine> runs_under(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw InvalidArgument(fmt::format("{}: no such folder", folder.string()));
  std::vector<RunLine> out;
  if (RunFolder::is_whole(folder)) return {line_of(folder)};
  const auto options = fs::directory_options::skip_permission_denied;
  std::error_code error;
  fs::path last = folder;  // what an error is about: the iterator is at its end then
  for (auto at = fs::recursive_directory_iterator(folder, options, error);; at.increment(error)) {
    if (error) throw fs::filesystem_error("cannot be read", last, error);
    if (at == fs::end(at)) break;
    last = at->path();
    if (!at->is_directory() || at->is_symlink()) continue;
    if (at->path().filename().string().starts_with(".")) {
      at.disable_recursion_pending();
    } else if (RunFolder::is_whole(at->path())) {
      out.push_back(line_of(at->path()));
      at.disable_recursion_pending();
    }
  }
  std::sort(out.begin(), out.end(),
            [](const RunLine& a, const RunLine& b) { return a.folder < b.folder; });
  return out;
}

}  // namespace fovea::train
