#include "systems/run/provenance.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include "data/files/file.h"
#include "io/sha256.h"
#include "data/formats/safetensors.h"
#include "fovea/error.h"
#include "fovea/version.h"

namespace fovea::systems {
namespace {

using Keys = std::vector<uint64_t>;
constexpr Split kParts[] = {Split::kTrain, Split::kValidation, Split::kTest};
constexpr size_t kShown = 12;  // of a sum's 64 digits

std::string shown(const std::string& sum) { return sum.substr(0, kShown); }

Keys sorted_keys(const Task& task, Split part) {
  Keys keys = task.item_keys(part);
  std::sort(keys.begin(), keys.end());
  return keys;
}

Keys recorded(const std::string& split, Split part) {
  const data::Safetensors file = data::parse_safetensors(split, kSplitFile);
  const auto found = file.arrays.find(data::name_of(part));
  if (found == file.arrays.end() || found->second.type != data::ElementType::kInt64)
    throw InvalidArgument(
        fmt::format("{}: no keys of the {} split", kSplitFile, data::name_of(part)));
  Keys keys(found->second.bytes.size() / sizeof(uint64_t));
  if (!keys.empty())
    std::memcpy(keys.data(), found->second.bytes.data(), found->second.bytes.size());
  return keys;
}

// How many of `some` are among `others`; an item that occurs twice counts twice.
int64_t count_among(const Keys& some, const Keys& others) {
  return std::count_if(some.begin(), some.end(), [&](uint64_t key) {
    return std::binary_search(others.begin(), others.end(), key);
  });
}

Keys without(const Keys& some, const Keys& others) {
  Keys out;
  std::copy_if(some.begin(), some.end(), std::back_inserter(out), [&](uint64_t key) {
    return !std::binary_search(others.begin(), others.end(), key);
  });
  return out;
}

}  // namespace

std::string program() { return FOVEA_VERSION; }

std::string read_items(Task& task, const Source& source) {
  const data::ReadLog log;
  task.read(source);
  return source.path.empty() ? "" : log.sha256();
}

std::string split_bytes(const Task& task) {
  data::Safetensors file;
  bool known = false;
  for (const Split part : kParts) {
    const Keys keys = sorted_keys(task, part);
    known = known || !keys.empty();
    data::Array& array = file.arrays[data::name_of(part)];
    array = {data::ElementType::kInt64, {static_cast<int64_t>(keys.size())}, {}};
    array.bytes.assign(reinterpret_cast<const char*>(keys.data()), keys.size() * sizeof(uint64_t));
  }
  return known ? data::safetensors_bytes(file) : "";
}

std::string configuration_sum(const Json& config) {
  Json asked = Json::object();
  for (const char* field : {"system", "data_sha256", "inputs_sha256", "split_sha256", "seed",
                            "data_seed", "fold", "folds", "options"})
    asked[field] = config.value(field, Json());
  asked["options"].erase("epochs");
  for (const char* field : {"parts", "sums"})
    if (config.contains(field)) asked[field] = config.at(field);
  return io::sha256(asked.dump());
}

std::string check_own_data(const Json& config, const std::string& split, const Task& task,
                           Split judged, const std::string& data_sum) {
  const Json before = config.value("data_sha256", Json());
  if (before.is_null() || before == data_sum) return "";
  const std::string changed =
      fmt::format("the data have changed since training (sha256 {}, was {})", shown(data_sum),
                  shown(before.get<std::string>()));
  if (split.empty()) return changed;
  const Keys now = sorted_keys(task, judged), was = recorded(split, judged);
  if (now == was)
    return fmt::format("{}; the {} items are the same", changed, data::name_of(judged));
  // Items that were in both splits at the training are not counted.
  const Keys fresh = without(now, was);
  const int64_t learned =
      judged == Split::kTrain ? 0 : count_among(fresh, recorded(split, Split::kTrain));
  if (learned > 0)
    throw InvalidArgument(fmt::format(
        "{}: {}, and {} of {} {} items were in the run's training; restore the data, or evaluate "
        "others with --data",
        config.at("data").get<std::string>(), changed, learned, now.size(), data::name_of(judged)));
  return fmt::format("{}: {} of {} {} items are new", changed, fresh.size(), now.size(),
                     data::name_of(judged));
}

std::string check_other_data(const std::string& split, const Task& task) {
  if (split.empty()) return "";
  const Keys judged = sorted_keys(task, Split::kTest);
  const int64_t learned = count_among(judged, recorded(split, Split::kTrain));
  return learned == 0 ? ""
                      : fmt::format("{} of these {} items were in the run's training", learned,
                                    judged.size());
}

std::string check_split(const Task& task, Split judged) {
  if (judged == Split::kTrain) return "";
  const Keys keys = sorted_keys(task, judged);
  const int64_t learned = count_among(keys, sorted_keys(task, Split::kTrain));
  return learned == 0 ? ""
                      : fmt::format("{} of these {} items are in the training split too", learned,
                                    keys.size());
}

std::string signature(const Json& config, const Task& task, const Judged& judged) {
  const int64_t folds = config.at("folds");
  std::string part = data::name_of(judged.split);
  if (judged.other_data)
    part = "all";
  else if (folds > 0)
    part += fmt::format("-fold{}of{}", config.at("fold").get<int64_t>() + 1, folds);
  if (const Keys keys = sorted_keys(task, judged.split); !judged.data.empty() && !keys.empty())
    part += "-" + shown(io::sha256({reinterpret_cast<const char*>(keys.data()),
                                    keys.size() * sizeof(uint64_t)}));
  const Json option_values = {{"system", config.at("system")}, {"options", config.at("options")}};
  std::string out = fmt::format(
      "fovea:{}|data:{}|split:{}|seed:{}|threads:{}|settings:{}", program(),
      judged.data.empty() ? fmt::format("generated-{}", config.at("data_seed").get<uint64_t>())
                          : shown(judged.data),
      part, config.at("seed").get<uint64_t>(), config.at("threads").get<int64_t>(),
      shown(io::sha256(option_values.dump())));
  if (config.contains("parts")) out += fmt::format("|parts:{}", config.at("parts").get<int64_t>());
  if (config.contains("sums")) out += "|sums:" + config.at("sums").get<std::string>();
  return judged.device == "cpu" ? out : out + "|device:" + judged.device;
}

}  // namespace fovea::systems
