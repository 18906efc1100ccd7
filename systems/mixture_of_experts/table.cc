#include "systems/mixture_of_experts/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data/files/file.h"
#include "data/random.h"

namespace fovea::systems::mixture_of_experts {
namespace {

Rows generate(uint64_t seed) {
  constexpr int64_t kTrain = 4000, kValidation = 500, kTest = 1000;
  constexpr double kStart[kPieces] = {0, 1.5, -0.8, 1}, kSlope[kPieces] = {4, -4, 3, -2};
  constexpr double kNoise = 0.05;
  data::Random random(data::mix(seed, 0x9EC3));
  Rows out{.table = {.inputs = {"x"}, .target = "y"}};
  for (int64_t i = 0; i < kTrain + kValidation + kTest; ++i) {
    const double x = random.uniform();
    const auto piece = static_cast<int64_t>(x * kPieces);
    out.table.x.push_back(x);
    out.table.y.push_back(kStart[piece] +
                          kSlope[piece] * (x - static_cast<double>(piece) / kPieces) +
                          kNoise * random.normal());
    out.piece.push_back(piece);
    (i < kTrain                 ? out.splits.train
     : i < kTrain + kValidation ? out.splits.validation
                                : out.splits.test)
        .push_back(i);
  }
  return out;
}

}  // namespace

Rows read_rows(const Source& source, const data::Columns& columns) {
  if (source.path.empty()) return generate(source.seed);
  Rows out{.table = data::regression(data::read_csv(source.path), columns)};
  data::SplitRequest request = split_request(source);
  request.keys = out.table.keys;
  out.splits = data::split(static_cast<int64_t>(out.table.rows()), request);
  return out;
}

Written write_rows(const Rows& rows) {
  Written out{.data = "curve.csv", .truth = "truth.jsonl, the piece of each row"};
  std::string &table = out.files["curve.csv"], &truth = out.files["truth.jsonl"];
  table = "x,y\n";
  for (size_t i = 0; i < rows.table.rows(); ++i) {
    table += fmt::format("{},{}\n", rows.table.x[i], rows.table.y[i]);
    if (!rows.piece.empty()) truth += Json{{"row", i}, {"piece", rows.piece[i]}}.dump() + "\n";
  }
  return out;
}

Scales Scales::of(const Rows& rows) {
  const size_t inputs = rows.table.inputs.size();
  Scales out{.low = std::vector<double>(inputs, INFINITY),
             .high = std::vector<double>(inputs, -INFINITY)};
  double sum = 0, squares = 0;
  for (const int64_t row : rows.splits.train) {
    for (size_t i = 0; i < inputs; ++i) {
      const double x = rows.table.x[static_cast<size_t>(row) * inputs + i];
      out.low[i] = std::min(out.low[i], x);
      out.high[i] = std::max(out.high[i], x);
    }
    const double y = rows.table.y[static_cast<size_t>(row)];
    sum += y;
    squares += y * y;
  }
  const double count = std::max<double>(1, static_cast<double>(rows.splits.train.size()));
  out.mean = sum / count;
  out.deviation = std::sqrt(std::max(0.0, squares / count - out.mean * out.mean));
  if (!(out.deviation > 1e-12)) out.deviation = 1;  // a constant
  return out;
}

std::vector<float> Scales::inputs(const std::vector<double>& x) const {
  std::vector<float> out;
  for (size_t i = 0; i < x.size(); ++i) {
    const double from = low[i % low.size()], to = high[i % low.size()];
    out.push_back(to > from ? static_cast<float>(2 * (x[i] - from) / (to - from) - 1) : 0.0f);
  }
  return out;
}

}  // namespace fovea::systems::mixture_of_experts
