// Where a figure comes from: the data by their contents, the split by its items, the settings by
// their sum, and the signature that says all of it beside the figure.
#pragma once

#include <string>

#include "train/task.h"
#include "train/types.h"

namespace fovea::systems {

inline constexpr const char* kSplitFile = "split.safetensors";

// The version of this program.
std::string program();

// What was read: one sum of the contents of all files, however they are called or packed. Empty
// where items were made up.
std::string read_items(Task& task, const Source& source);

// The keys of each part's items as a file of the RUN; empty where the task does not tell its items
// apart.
std::string split_bytes(const Task& task);

// The sum of what a RUN was asked to be, its data included and the number of epochs left out: only
// what has the same sum goes on with its state.
std::string configuration_sum(const Json& config);

// What there is to say where a RUN's own data are not those it was trained on; empty where they
// are. `split` holds its split_bytes. InvalidArgument where items the RUN learned from would be
// judged as if they were new.
std::string check_own_data(const Json& config, const std::string& split, const Task& task,
                           Split judged, const std::string& data_sum);
// The same of other data, all of which are judged: how many the RUN learned from.
std::string check_other_data(const std::string& split, const Task& task);

struct Judged {
  std::string data;  // the sum of what was read; empty: made up
  Split split = Split::kTest;
  bool other_data = false;  // `evaluate --data`
  std::string device = "cpu";
};
// fovea:0.1.0|data:5d41402abc4b|split:test-7b9ac3f0d2e1|seed:1|threads:2|settings:0cc175b9c0f1, and
// |device:cuda where it was not the CPU.
std::string signature(const Json& config, const Task& task, const Judged& judged);

}  // namespace fovea::systems
