#include "systems/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "data/file.h"
#include "data/json.h"
#include "fovea/error.h"
#include "train/fields.h"

namespace fovea::systems {

using train::RunFolder;

namespace {

// A run holds what it names: a path would lead a reader, or one who overwrites, elsewhere.
void check_own(const std::string& name, const std::string& path) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw InvalidArgument(
        fmt::format("{}: {} is not the name of a part of the run", path, data::shown(name)));
}

}  // namespace

Json read_config(const RunFolder& folder) {
  const std::string path = (folder / kConfigFile).string();
  Json config = data::parse_json(folder.read(kConfigFile), path);
  const bool known = config.is_object() && config.contains("system") &&
                     config.value("version", Json()) == Json(kConfigVersion);
  if (!known)
    throw InvalidArgument(fmt::format("{}: expected a run of version {}", path, kConfigVersion));
  // What every run has, so that nobody who reads it later meets another type.
  const train::Fields fields(config, path + ": ");
  fields.text("system");
  fields.object("options");
  fields.seed("seed");
  fields.seed("data_seed");
  const int64_t folds = fields.integer("folds", 0);
  fields.integer("fold", 0, std::max<int64_t>(folds - 1, 0));
  if (!fields.has("data")) fields.refuse("data", "a path or null");
  if (!config.at("data").is_null()) fields.text("data");
  if (fields.has("rank")) fields.number("rank");
  if (fields.has("members"))
    for (const std::string& name : fields.texts("members")) check_own(name, path);
  if (fields.has("files"))
    for (const std::string& name : fields.texts("files")) check_own(name, path);
  return config;
}

Source source_of(const Json& config) {
  return {.path = config.at("data").is_null() ? "" : config.at("data").get<std::string>(),
          .seed = config.at("data_seed"),
          .fold = config.at("fold"),
          .folds = config.at("folds")};
}

void write_assets(const RunFolder& folder, Json& config, const Assets& assets) {
  config["facts"] = assets.facts;
  config["files"] = Json::array();
  for (const auto& [name, bytes] : assets.files) {
    folder.write(name, bytes);
    config["files"].push_back(name);
  }
  folder.write(kConfigFile, config.dump(2) + "\n");
}

Assets read_assets(const RunFolder& folder, const Json& config) {
  const train::Fields fields(config, (folder / kConfigFile).string() + ": ");
  Assets assets;
  assets.facts = fields.object("facts");
  for (const std::string& name : fields.texts("files")) assets.files[name] = folder.read(name);
  return assets;
}

}  // namespace fovea::systems
