// Where a figure comes from: hashes of the data's contents, of the split's items and of the options,
// and the signature with all of them that is printed beside the figure.
#pragma once

#include <string>

#include "train/task.h"
#include "train/types.h"

namespace fovea::systems {

inline constexpr const char* kSplitFile = "split.safetensors";

// The version of this program.
std::string program();

// Reads the items. Returns one hash of the unpacked contents of all files, whatever their names;
// empty if items were generated.
std::string read_items(Task& task, const Source& source);

// The keys of the items of each split, as a file of the RUN; empty if the task's items have no
// keys.
std::string split_bytes(const Task& task);

// A hash of a RUN's configuration, with its data and without the number of epochs: only a training
// with the same hash continues from its state.
std::string configuration_sum(const Json& config);

// A note if a RUN's data have changed since its training; empty if not. `split` holds its
// split_bytes. InvalidArgument if training items would be evaluated as if they were new.
std::string check_own_data(const Json& config, const std::string& split, const Task& task,
                           Split judged, const std::string& data_sum);
// The same for other data, all of which are evaluated: how many items were in the RUN's training.
std::string check_other_data(const std::string& split, const Task& task);

// A note if items to be judged are in the training split too, as the files or the generator have them;
// empty if none is.
std::string check_split(const Task& task, Split judged);

struct Judged {
  std::string data;  // the hash of what was read; empty: generated
  Split split = Split::kTest;
  bool other_data = false;  // `evaluate --data`
  std::string device = "cpu";
};
// fovea:0.1.0|data:5d41402abc4b|split:test-7b9ac3f0d2e1|seed:1|threads:2|settings:0cc175b9c0f1
// and, if batches were divided, how (|parts:4, and |sums:any), and, if it was not the CPU, the device:
// |device:cuda.
std::string signature(const Json& config, const Task& task, const Judged& judged);

}  // namespace fovea::systems
