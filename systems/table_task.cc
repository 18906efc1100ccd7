#include "systems/table_task.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <set>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "data/formats/regression.h"
#include "train/fields.h"

namespace fovea::systems {

void TableTask::read(const Source& source) {
  if (source.path.empty()) {
    table_ = generated(data::kGenerated.all(), source.seed);
    splits_ = data::in_order(data::kGenerated);
    return;
  }
  // A trained run finds its columns by name, at any position of another table.
  const OptionValues& options = run_options_.options;
  table_ = data::regression(data::read_csv(source.path),
                            columns_.empty()
                                ? data::Columns{.x = options.list("x"), .y = options.text("y")}
                                : data::Columns{.x = columns_, .y = target_});
  data::SplitRequest request = split_request(source);
  request.keys = table_.keys;
  const size_t different = std::set<uint64_t>(request.keys.begin(), request.keys.end()).size();
  if (!source.all_test && different < 3)
    throw data::FileError(
        source.path, 0,
        fmt::format("{} different row{}, expected at least 3: for training, validation and test",
                    different, different == 1 ? "" : "s"));
  splits_ = data::split(static_cast<int64_t>(table_.rows()), request);
}

void TableTask::prepare() {
  columns_ = table_.inputs;
  target_ = table_.target;
  scales_ = data::Scales::of(table_, splits_.train);
}

Assets TableTask::assets() const {
  return {.facts = {{"columns", columns_},
                    {"target", target_},
                    {"low", scales_.low},
                    {"high", scales_.high},
                    {"mean", scales_.mean},
                    {"deviation", scales_.deviation}},
          .files = {}};
}

void TableTask::restore(const Assets& assets) {
  const train::Fields facts(assets.facts, "facts.");
  columns_ = facts.texts("columns");
  target_ = facts.text("target");
  scales_ = {.low = facts.numbers("low"),
             .high = facts.numbers("high"),
             .mean = facts.number("mean"),
             .deviation = facts.number("deviation")};
  if (columns_.empty() || scales_.low.size() != columns_.size() ||
      scales_.high.size() != columns_.size())
    facts.refuse("low", "a number for each column, and at least one");
}

torch::Tensor TableTask::scaled(const std::vector<double>& x) const {
  const std::vector<float> numbers = scales_.inputs(x);
  return torch::tensor(at::ArrayRef<float>(numbers))
      .reshape({-1, static_cast<int64_t>(columns_.size())})
      .to(run_options_.device);
}

torch::Tensor TableTask::inputs(const std::vector<int64_t>& items) const {
  std::vector<double> x;
  for (const int64_t item : items)
    for (size_t i = 0; i < columns_.size(); ++i)
      x.push_back(table_.x[static_cast<size_t>(item) * columns_.size() + i]);
  return scaled(x);
}

torch::Tensor TableTask::targets(const std::vector<int64_t>& items) const {
  std::vector<float> y;
  for (const int64_t item : items) y.push_back(scales_.target(table_.y[static_cast<size_t>(item)]));
  return torch::tensor(at::ArrayRef<float>(y)).unsqueeze(1).to(run_options_.device);
}

std::vector<double> TableTask::rows_in(Input& input) const {
  return data::inputs(data::parse_csv(data::read_stream(input.stream, input.name), input.name),
                      columns_);
}

}  // namespace fovea::systems
