// A task on a table of numbers: one column is predicted from the others. Reads, splits and scales
// the rows. A system adds its generator, its model, its loss and its view. Its options `x` and `y`
// name the columns.
#pragma once

#include <torch/types.h>

#include <string>
#include <vector>

#include "data/scales.h"
#include "data/split.h"
#include "train/task.h"

namespace fovea::systems {

class TableTask : public GradientTask {
 public:
  explicit TableTask(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source&) override;
  std::string read_in_words() const override { return data::in_words(table_); }
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  int64_t items(Split split) const override {
    return static_cast<int64_t>(splits_.of(split).size());
  }
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }

 protected:
  // Generates `rows` rows, if the user gives no data.
  virtual data::Regression generated(int64_t rows, uint64_t seed) = 0;

  // As the model reads them: [items, columns], [items, 1].
  torch::Tensor inputs(const std::vector<int64_t>& items) const;
  torch::Tensor targets(const std::vector<int64_t>& items) const;
  torch::Tensor scaled(const std::vector<double>& x) const;
  // The inputs of a user's CSV, row by row.
  std::vector<double> rows_in(Input& input) const;

  const RunOptions run_options_;
  data::Regression table_;
  data::Splits splits_;
  data::Scales scales_;
  std::vector<std::string> columns_;  // the inputs of the run
  std::string target_;
};

}  // namespace fovea::systems
