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

// InvalidArgument where a line is no object, naming `name` and the line.
Curves read_curves(const std::string& lines, const std::string& name);

// A header, then a line for each row; a number that a row has not is an empty field.
std::string curves_csv(const Curves&);

// TensorBoard's file of events: one scalar for each number. `time`, in seconds since 1970, is what
// every event bears.
std::string curves_events(const Curves&, double time);

}  // namespace fovea::train
