// Data, bandwidth and metric of Nadaraya-Watson regression.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "data/formats/regression.h"
#include "data/split.h"
#include "systems/nadaraya_watson/model.h"
#include "train/task.h"

namespace fovea::systems::nadaraya_watson {

class Regression : public GradientTask {
 public:
  explicit Regression(const RunOptions& run_options) : run_options_(run_options) {}

  void read(const Source&) override;
  std::string read_in_words() const override { return data::in_words(table_); }
  void prepare() override;
  Assets assets() const override;
  void restore(const Assets&) override;
  std::shared_ptr<torch::nn::Module> build() override;
  // Finds the bandwidth, then learns the metric if one is chosen.
  void fit(train::Fit&) override;

  int64_t items(Split split) const override;
  Loss loss(const Batch&) override;  // leave-one-out, so that no row predicts itself
  Evaluation evaluate(Split) override;
  std::vector<uint64_t> item_keys(Split split) const override { return splits_.keys_of(split); }
  void predict(Input, std::ostream&) override;
  std::vector<explain::Explanation> explain(Input*) override;
  Written write() const override;

 private:
  torch::Tensor inputs_of(const std::vector<int64_t>& rows) const;  // [rows, inputs], raw
  torch::Tensor targets_of(const std::vector<int64_t>& rows) const;
  void note_far(const Input&, const data::Table&, const torch::Tensor& raw,
                const torch::Tensor& predicted) const;
  void find_bandwidth(train::Fit&);
  void find_neighbours(train::Fit&);
  int64_t refinements() const;                    // steps of the search after its grid
  std::vector<int64_t> neighbour_counts() const;  // that are tried
  void restore_search(const train::Fields& facts);

  explain::Explanation picture(const torch::Tensor& raw_queries) const;
  void add_curves(explain::Explanation&, const torch::Tensor& raw_queries) const;
  // Whether the weights are shown at every bandwidth of the slider: one input, not too many rows.
  bool follows_sliders() const;
  void add_layers(explain::Explanation&, const torch::Tensor& query,
                  const torch::Tensor& keys) const;
  void add_bumps(explain::Explanation&, const torch::Tensor& at) const;
  void add_map(explain::Explanation&) const;

  const RunOptions run_options_;
  data::Regression table_;
  data::Splits splits_;
  Shape shape_;
  std::vector<std::string> columns_;
  std::string target_;
  Search search_;
  LeaveOneOut single_;  // at the best single bandwidth, before a metric was learned
  std::shared_ptr<Model> model_;
};

}  // namespace fovea::systems::nadaraya_watson
