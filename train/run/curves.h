// The numbers of a training by epoch, as metrics.jsonl has them; for spreadsheets as CSV and for
// TensorBoard as an event file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fovea::train {

struct Curves {
  struct Row {
    int64_t step = 0;
    std::vector<std::pair<std::string, double>> values;  // "loss", "validation/accuracy"
  };
  std::vector<Row> rows;

  std::optional<double> last(const std::string& name) const;
};

// InvalidArgument, with `name` and the line, if a line is not an object.
Curves read_curves(const std::string& lines, const std::string& name);

// A header, then a line for each row. If a row lacks a number, its field is empty.
std::string curves_csv(const Curves&);

// TensorBoard's event file: one scalar for each number. Every event has the same `time`, in seconds
// since 1970.
std::string curves_events(const Curves&, double time);

}  // namespace fovea::train
