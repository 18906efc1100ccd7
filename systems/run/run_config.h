// A RUN's configuration: the request, the data, and what was found in the data before the weights
// were trained.
#pragma once

#include <cstdint>
#include <string>

#include "train/run/run_folder.h"
#include "train/types.h"

namespace fovea::systems {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr int kConfigVersion = 2;
inline constexpr int64_t kMostMembers = 10'000;  // seeds times folds
inline constexpr int64_t kMostParts = 65'536;
// Parts of a batch under a launcher: one, two and four ranks then give the same weights.
inline constexpr int64_t kPartsOfRanks = 4;
inline constexpr const char* kOrderedSums = "ordered";  // the other is "any"

// InvalidArgument names `path` and what is wrong with it.
Json parse_config(const std::string& text, const std::string& path);
Json read_config(const train::RunFolder& folder);
// The data it was trained on.
Source source_of(const Json& config);
// How many parts each batch is divided into.
int64_t parts_of(const Json& config);
// Whether sums over ranks keep the order of the parts.
bool sums_are_ordered(const Json& config);
Assets read_assets(const train::RunFolder& folder, const Json& config);

// A configuration is JSON, and so UTF-8: UsageError names the path or the option that is not.
void check_recordable(const Json& config);
// A run can only be resumed with the same settings; epochs and seeds may be added. UsageError names
// the setting that differs, with both values; `run` is the RUN.
void check_resumable(const std::string& run, const Json& before, const Json& now);
// The same for the contents of its data.
void check_same_data(const std::string& run, const Json& before, const Json& now);
// The same among the seeds and folds of one training, each of which reads the data. InvalidArgument.
void check_unchanged(const std::string& run, const Json& before, const Json& now);

}  // namespace fovea::systems
