// What a RUN's folder says of it: config.json, and the files of its system.
#pragma once

#include "train/run_folder.h"
#include "train/types.h"

namespace fovea::systems {

inline constexpr const char* kConfigFile = "config.json";
inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr int kConfigVersion = 1;

Json read_config(const train::RunFolder& folder);
// The data it was trained on.
Source source_of(const Json& config);
void write_assets(const train::RunFolder& folder, Json& config, const Assets& assets);
Assets read_assets(const train::RunFolder& folder, const Json& config);

}  // namespace fovea::systems
