#include "systems/run_config.h"

#include <fmt/format.h>

#include <string>

#include "fovea/error.h"

namespace fovea::systems {

using train::RunFolder;

Json read_config(const RunFolder& folder) {
  Json config;
  try {
    config = Json::parse(folder.read(kConfigFile));
  } catch (const Json::exception& error) {
    throw InvalidArgument(
        fmt::format("{}: not JSON: {}", (folder / kConfigFile).string(), error.what()));
  }
  if (!config.is_object() || config.value("version", 0) != kConfigVersion ||
      !config.contains("system"))
    throw InvalidArgument(fmt::format("{}: expected a run of version {}",
                                      (folder / kConfigFile).string(), kConfigVersion));
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
  Assets assets;
  assets.facts = config.at("facts");
  for (const auto& name : config.at("files")) {
    const std::string file = name.get<std::string>();
    if (file.find('/') != std::string::npos)
      throw InvalidArgument(
          fmt::format("{}: '{}' is not a file of the run", (folder / kConfigFile).string(), file));
    assets.files[file] = folder.read(file);
  }
  return assets;
}

}  // namespace fovea::systems
