#include "systems/nadaraya_watson/task.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <cmath>
#include <ostream>

#include "data/files/file.h"
#include "data/files/lines.h"
#include "systems/nadaraya_watson/samples.h"
#include "train/answers.h"
#include "train/fields.h"

namespace fovea::systems::nadaraya_watson {
namespace {

data::Missing missing_of(const std::string& name) {
  return name == "drop"     ? data::Missing::kDrop
         : name == "mean"   ? data::Missing::kMean
         : name == "median" ? data::Missing::kMedian
                            : data::Missing::kError;
}

torch::ScalarType precision_of(const std::string& name, int64_t rows) {
  if (name == "auto") return rows > 5000 ? torch::kFloat32 : torch::kFloat64;
  return name == "float32" ? torch::kFloat32 : torch::kFloat64;
}

}  // namespace

void Regression::read(const Source& source) {
  const OptionValues& options = run_options_.options;
  if (source.path.empty()) {
    for (const char* name : {"x", "y"})
      if (!options.text(name).empty())
        throw UsageError(
            fmt::format("--set {}={}: expected --data with it; generated data has its own columns",
                        name, options.text(name)));
    table_ =
        options.text("sample") == "sine" ? sine(options.integer("n"), source.seed) : motorcycle();
  } else {
    data::Columns columns{.x = options.list("x"),
                          .y = options.text("y"),
                          .missing = missing_of(options.text("missing"))};
    if (!columns_.empty()) {
      columns.x = columns_;  // a run keeps the columns of its training
      columns.y = target_;
    }
    table_ = data::regression(data::read_csv(source.path), columns);
    if (!source.all_test && table_.rows() < 2)
      throw data::FileError(
          source.path, 0,
          "one row is left, expected at least 2: each is predicted from the others");
  }
  const auto rows = static_cast<int64_t>(table_.rows());
  data::SplitRequest request = split_request(source);
  request.validation = 0;
  request.test = options.number("test");
  request.keys = table_.keys;
  splits_ = data::split(rows, request);
}

torch::Tensor Regression::inputs_of(const std::vector<int64_t>& rows) const {
  const auto width = static_cast<int64_t>(table_.inputs.size());
  torch::Tensor out = torch::empty({static_cast<int64_t>(rows.size()), width}, torch::kFloat64);
  auto* to = out.data_ptr<double>();
  for (const int64_t row : rows) to = std::copy_n(table_.x.data() + row * width, width, to);
  return out;
}

torch::Tensor Regression::targets_of(const std::vector<int64_t>& rows) const {
  torch::Tensor out = torch::empty({static_cast<int64_t>(rows.size())}, torch::kFloat64);
  for (size_t i = 0; i < rows.size(); ++i)
    out[static_cast<int64_t>(i)] = table_.y[static_cast<size_t>(rows[i])];
  return out;
}

void Regression::prepare() {
  if (splits_.train.size() < 2)
    throw InvalidArgument(
        fmt::format("training rows: {}, expected at least 2", splits_.train.size()));
  columns_ = table_.inputs;
  target_ = table_.target;
  shape_ = {.rows = static_cast<int64_t>(splits_.train.size()),
            .inputs = static_cast<int64_t>(columns_.size()),
            .metric = run_options_.options.text("learn"),
            .type = precision_of(run_options_.options.text("precision"),
                                 static_cast<int64_t>(splits_.train.size()))};
}

Assets Regression::assets() const {
  Assets out;
  Json grid = Json::array();
  for (const GridPoint& p : search_.grid)
    grid.push_back(
        {p.h, p.criterion, std::isfinite(p.mse) ? Json(p.mse) : Json(nullptr), p.undefined});
  out.facts = {{"rows", shape_.rows},
               {"columns", columns_},
               {"target", target_},
               {"float32", shape_.type == torch::kFloat32},
               {"filled", table_.filled},
               {"dropped", table_.dropped},
               {"grid", grid},
               {"single_loo_mse", single_.criterion}};
  return out;
}

void Regression::restore(const Assets& assets) {
  const train::Fields facts(assets.facts, "facts.");
  columns_ = facts.texts("columns");
  if (columns_.empty()) facts.refuse("columns", "at least one name");
  target_ = facts.text("target");
  constexpr int64_t kMostRows = int64_t{1} << 31;  // more than fits into any memory
  shape_ = {.rows = facts.integer("rows", 1, kMostRows),
            .inputs = static_cast<int64_t>(columns_.size()),
            .metric = run_options_.options.text("learn"),
            .type = facts.flag("float32") ? torch::kFloat32 : torch::kFloat64};
  restore_search(facts);
  single_.criterion = facts.number("single_loo_mse");
}

std::shared_ptr<torch::nn::Module> Regression::build() {
  model_ = std::make_shared<Model>(shape_, kernel_of(run_options_.options.text("kernel")));
  if (splits_.train.empty()) return model_;  // opened for use: the weights bring everything
  const torch::NoGradGuard guard;
  const torch::Tensor raw = inputs_of(splits_.train);
  const std::string& choice = run_options_.options.text("standardise");
  if (choice == "yes" || (choice == "auto" && shape_.inputs > 1)) {
    model_->mean.copy_(raw.mean(0));
    const torch::Tensor deviation = raw.std(0, /*unbiased=*/false);
    model_->deviation.copy_(torch::where(deviation > 0, deviation, torch::ones_like(deviation)));
  }
  model_->x.copy_(model_->scaled(raw));
  model_->y.copy_(targets_of(splits_.train));
  return model_;
}

int64_t Regression::items(Split split) const {
  return split == Split::kTrain ? shape_.rows : static_cast<int64_t>(splits_.of(split).size());
}

Loss Regression::loss(const Batch& batch) {
  const torch::Tensor rows =
      torch::tensor(std::vector<int64_t>(batch.items.begin(), batch.items.end()))
          .to(model_->x.device());
  const torch::Tensor predicted = model_->without_self(rows);
  const torch::Tensor seen = predicted.isfinite();
  const torch::Tensor error = (model_->y.index_select(0, rows) - predicted).masked_select(seen);
  const int64_t count = error.size(0);
  // In units of the target's variance, so that a rate means the same for every target.
  return {count ? error.square().mean() / model_->y.var().clamp_min(1e-30)
                : predicted.nan_to_num().sum() * 0,
          count};
}

Evaluation Regression::evaluate(Split split) {
  const torch::NoGradGuard guard;
  Evaluation out;
  const double mean = model_->y.to(torch::kFloat64).mean().item<double>();
  const bool own = split == Split::kTrain || splits_.of(split).empty();
  const torch::Tensor query = own ? model_->x : model_->scaled(inputs_of(splits_.of(split)));
  const torch::Tensor truth = own ? model_->y.to(torch::kFloat64) : targets_of(splits_.of(split));
  if (own) {
    const LeaveOneOut result = leave_one_out(*model_);
    out.put("loo_mse", result.mse);
    out.put("loo_rmse", std::sqrt(result.mse));
    out.metrics["loo_undefined"] = static_cast<double>(result.undefined);
    if (model_->metric.defined()) out.metrics["loo_mse_one_bandwidth"] = single_.criterion;
    out.of = Split::kTrain;  // no rows were kept back: rmse is in sample
  }
  const torch::Tensor predicted = model_->predict(query).to(torch::kFloat64).cpu();
  const torch::Tensor seen = predicted.isfinite();
  const torch::Tensor error = (truth.cpu() - predicted).masked_select(seen);
  out.items = truth.size(0);
  if (error.numel())
    out.metrics["rmse"] = std::sqrt(error.square().mean().item<double>());
  else
    out.notes.push_back("rmse: undefined, no row sees an observation");
  out.metrics["gaps"] = static_cast<double>(out.items - error.numel());
  out.metrics["mean_only_rmse"] = std::sqrt((truth - mean).square().mean().item<double>());
  if (model_->neighbours.item<int64_t>() > 0)
    out.metrics["neighbours"] = static_cast<double>(model_->neighbours.item<int64_t>());
  else
    out.metrics["bandwidth"] = model_->bandwidth.item<double>();
  return out;
}

// Rows without data near them: outside the range of the training data by more than a bandwidth
// (with neighbours, a twentieth of the range), or with no point within the kernel's reach.
void Regression::note_far(const Input& input, const data::Table& table, const torch::Tensor& raw,
                          const torch::Tensor& predicted) const {
  constexpr int64_t kMostNotes = 5;
  if (!input.noted) return;
  const torch::Tensor seen =
      (model_->x * model_->deviation + model_->mean).to(torch::kFloat64).cpu();
  const torch::Tensor low = std::get<0>(seen.min(0)), high = std::get<0>(seen.max(0));
  const torch::Tensor reach =
      model_->neighbours.item<int64_t>() > 0
          ? (high - low) / 20
          : (model_->deviation * model_->bandwidth).to(torch::kFloat64).cpu().expand_as(low);
  int64_t far = 0;
  for (int64_t row = 0; row < raw.size(0); ++row) {
    const std::string place =
        fmt::format("{}:{}: ", input.name, table.lines[static_cast<size_t>(row)]);
    for (int64_t c = 0; c < raw.size(1); ++c) {
      const double value = raw[row][c].item<double>(), least = low[c].item<double>(),
                   most = high[c].item<double>(), by = reach[c].item<double>();
      if (value >= least - by && value <= most + by) continue;
      if (far++ < kMostNotes)
        input.noted(place + fmt::format("{} {:.6g} lies outside of the data, {:.6g} to {:.6g}: the "
                                        "answer is its edge's",
                                        columns_[static_cast<size_t>(c)], value, least, most));
      break;
    }
    if (!std::isfinite(predicted[row].item<double>()) && far++ < kMostNotes)
      input.noted(place + "no data within the kernel's reach, so no answer");
  }
  if (far > kMostNotes) input.noted(fmt::format("{} more such rows", far - kMostNotes));
}

void Regression::predict(Input input, std::ostream& out) {
  const std::string text = data::read_stream(input.stream, input.name);
  const data::Table table = data::parse_csv(text, input.name);
  const std::vector<double> values = data::inputs(table, columns_);
  const auto rows = static_cast<int64_t>(table.rows.size()),
             width = static_cast<int64_t>(columns_.size());
  const torch::Tensor raw = torch::tensor(values, torch::kFloat64).reshape({rows, width});
  const torch::Tensor predicted = model_->predict(model_->scaled(raw)).to(torch::kFloat64);
  note_far(input, table, raw, predicted);
  std::string head = fmt::format("{},{}\n", fmt::join(columns_, ","), target_);
  for (int64_t row = 0; row < rows; ++row) {
    std::string text = std::exchange(head, "");
    Json inputs = Json::object();
    for (int64_t c = 0; c < width; ++c) {
      const double value = values[static_cast<size_t>(row * width + c)];
      text += fmt::format("{},", value);
      inputs[columns_[static_cast<size_t>(c)]] = value;
    }
    const double value = predicted[row].item<double>();
    const bool known = std::isfinite(value);  // otherwise no point is in sight
    text += known ? fmt::format("{:.6g}\n", value) : "\n";
    write_answer(out, table.lines[static_cast<size_t>(row)],
                 {text, [&] {
                    return Json{{"inputs", inputs}, {"answer", known ? Json(value) : Json()}};
                  }});
  }
}

Written Regression::write() const {
  Written out{.data = "data.csv"};
  std::string &table = out.files["data.csv"], truth;
  table = fmt::format("{},{}\n", fmt::join(table_.inputs, ","), table_.target);
  for (size_t row = 0; row < table_.y.size(); ++row) {
    const double x = table_.x[row];  // both samples have one input
    table += fmt::format("{},{}\n", x, table_.y[row]);
    truth += Json{{"row", row}, {"x", x}, {"curve", std::sin(x)}}.dump() + "\n";
  }
  if (run_options_.options.text("sample") == "sine") {
    out.files["truth.jsonl"] = truth;
    out.truth = "truth.jsonl, the curve under the noise";
  }
  return out;
}

}  // namespace fovea::systems::nadaraya_watson
