// The RUNs in a folder, one line each, so that a user finds the one that was trained last week.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fovea::train {

struct RunLine {
  std::filesystem::path folder;
  std::string system, data;  // "generated" where no data were given
  std::string figure;        // "validation loss 0.049", the last that was monitored; or empty
  std::string date;          // as RunFolder::date
  std::string broken;        // why it cannot be read; the rest is then empty
};

// Every RUN in `folder` and below it, sorted by path. A folder inside a RUN belongs to that RUN.
// InvalidArgument if there is no such folder.
std::vector<RunLine> runs_under(const std::filesystem::path& folder);

}  // namespace fovea::train
