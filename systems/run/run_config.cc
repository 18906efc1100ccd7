#include "systems/run/run_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "data/files/file.h"
#include "data/files/json.h"
#include "fovea/error.h"
#include "train/fields.h"
#include "train/usage_error.h"

namespace fovea::systems {
namespace {

using train::RunFolder;

// A run contains the files that it names. A path would lead a reader, or a process that overwrites,
// to another place.
void check_own(const std::string& name, const std::string& path) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      data::visible(name) != name)
    throw InvalidArgument(
        fmt::format("{}: {} is not the name of a part of the run", path, data::shown(name)));
}

[[noreturn]] void differs(const std::string& run, const std::string& what, const Json& before,
                          const Json& now) {
  throw UsageError(fmt::format("--resume: {} was started with {} {}, not {}", run, what,
                               before.dump(), now.dump()));
}

// For epochs and seeds: a resumed run may ask for more of them, not for fewer.
void check_not_less(const std::string& run, const std::string& what, const Json& before,
                    const Json& now) {
  if (before.is_number_integer() && now.is_number_integer() ? now < before : before != now)
    differs(run, what, before, now);
}

}  // namespace

Json parse_config(const std::string& text, const std::string& path) {
  Json config = data::parse_json(text, path);
  const bool known = config.is_object() && config.contains("system") &&
                     config.value("version", Json()) == Json(kConfigVersion);
  if (!known)
    throw InvalidArgument(fmt::format("{}: expected a run of version {}", path, kConfigVersion));
  // The entries that every run has. Their types are checked here, so that later code does not need
  // to.
  const train::Fields fields(config, path + ": ");
  fields.text("system");
  fields.object("options");
  fields.seed("seed");
  fields.seed("data_seed");
  fields.integer("threads", 1);
  const int64_t folds = fields.integer("folds", 0, kMostMembers);
  fields.integer("fold", 0, std::max<int64_t>(folds - 1, 0));
  if (!fields.has("data")) fields.refuse("data", "text or null");
  for (const char* name : {"data", "data_sha256", "inputs_sha256", "split_sha256"})
    if (!config.value(name, Json()).is_null()) fields.text(name);
  if (config.at("data").is_null() && !config.value("data_sha256", Json()).is_null())
    fields.refuse("data", "a path, since there is a data_sha256");
  if (fields.has("rank")) fields.number_or_nan("rank");
  if (fields.has("parts")) fields.integer("parts", 1, kMostParts);
  if (fields.has("sums")) fields.text("sums");
  for (const char* list : {"members", "files"})
    if (fields.has(list))
      for (const std::string& name : fields.texts(list)) check_own(name, path);
  return config;
}

void check_recordable(const Json& config) {
  const auto check = [](const std::string& option, const Json& value) {
    if (value.is_string() && !data::is_utf8(value.get_ref<const std::string&>()))
      throw UsageError(option + data::visible(value.get<std::string>()) +
                       ": expected UTF-8, in which a run records it");
  };
  check("--data ", config.at("data"));
  for (const auto& [name, value] : config.at("options").items())
    check("--set " + name + "=", value);
}

Json read_config(const RunFolder& folder) {
  return parse_config(folder.read(kConfigFile), (folder / kConfigFile).string());
}

Source source_of(const Json& config) {
  return {.path = config.at("data").is_null() ? "" : config.at("data").get<std::string>(),
          .seed = config.at("data_seed"),
          .fold = config.at("fold"),
          .folds = config.at("folds")};
}

int64_t parts_of(const Json& config) { return config.value("parts", int64_t{1}); }

bool sums_are_ordered(const Json& config) {
  return config.value("sums", kOrderedSums) == std::string(kOrderedSums);
}

Assets read_assets(const RunFolder& folder, const Json& config) {
  const train::Fields fields(config, (folder / kConfigFile).string() + ": ");
  Assets assets;
  assets.facts = fields.object("facts");
  for (const std::string& name : fields.texts("files")) assets.files[name] = folder.read(name);
  return assets;
}

void check_resumable(const std::string& run, const Json& before, const Json& now) {
  for (const char* field : {"system", "seed", "data_seed", "fold", "folds"})
    if (before.at(field) != now.at(field)) differs(run, field, before.at(field), now.at(field));
  if (parts_of(before) != parts_of(now)) differs(run, "--parts", parts_of(before), parts_of(now));
  if (sums_are_ordered(before) != sums_are_ordered(now))
    differs(run, "--sums", before.value("sums", kOrderedSums), now.value("sums", kOrderedSums));
  check_not_less(run, "seeds", before.value("seeds", Json()), now.value("seeds", Json()));
  for (const auto& [name, value] : now.at("options").items()) {
    const Json old = before.at("options").value(name, Json());
    if (name == "epochs")
      check_not_less(run, "epochs", old, value);
    else if (old != value)
      throw UsageError(fmt::format("--resume: {} was started with {}={}, not {}", run, name,
                                   old.dump(), value.dump()));
  }
}

void check_same_data(const std::string& run, const Json& before, const Json& now) {
  for (const auto& [field, what] : {std::pair("data_sha256", "data of sha256"),
                                    std::pair("inputs_sha256", "vectors or pieces of sha256"),
                                    std::pair("split_sha256", "a split of sha256")}) {
    const Json old = before.value(field, Json()), fresh = now.value(field, Json());
    if (old != fresh) differs(run, what, old, fresh);
  }
}

void check_unchanged(const std::string& run, const Json& before, const Json& now) {
  const Json old = before.value("data_sha256", Json()), fresh = now.value("data_sha256", Json());
  if (old != fresh)
    throw InvalidArgument(
        fmt::format("{}: the data have changed since its first part was trained (sha256 {}, was "
                    "{}); restore them and continue by --resume, or begin again by --overwrite",
                    run, fresh.dump(), old.dump()));
}

}  // namespace fovea::systems
