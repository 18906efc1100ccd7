// Figures of several RUNs as a table, for `compare` and for a sweep.
#pragma once

#include <string>
#include <vector>

#include "train/types.h"

namespace fovea::cli {

struct Compared {
  std::string name;
  Json report;  // what `evaluate` returns
};

// Every figure that at least one of them has: "accuracy", "attention hit_rate".
std::vector<std::string> figures_of(const std::vector<Compared>& all);
// The figure with its spread over seeds or folds; empty if the RUN has no figure of that name.
std::string figure_text(const Compared& one, const std::string& figure);

// Each column is as wide as its longest text, written for a terminal.
std::string aligned(std::vector<std::vector<std::string>> rows);

}  // namespace fovea::cli
