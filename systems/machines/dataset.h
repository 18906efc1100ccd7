// The sequences of a run and their splits: generated, or read from a file or a folder.
#pragma once

#include <cstdint>
#include <vector>

#include "data/split.h"
#include "systems/machines/sequences.h"
#include "train/option_values.h"
#include "train/types.h"

namespace fovea::systems::machines {

struct Dataset {
  std::vector<Sequence> sequences = {};
  data::Splits splits = {};

  const Sequence& at(int64_t item) const { return sequences[static_cast<size_t>(item)]; }
  std::vector<Sequence> chosen(const std::vector<int64_t>& items) const;
};

// As many as the options say, and longer ones for test: of each length up to twice the longest.
Dataset generated_dataset(const Source& source, const OptionValues& options, Job job);
// A file, which is split, or a folder of a file for each split. `bits` as in `parsed`.
Dataset read_dataset(const Source& source, Job job, int64_t bits);
// A folder that read_dataset takes.
Written written(const Dataset& dataset, Job job);

}  // namespace fovea::systems::machines
