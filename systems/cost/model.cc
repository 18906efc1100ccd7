#include "systems/cost/model.h"

#include <cmath>
#include <utility>

#include "systems/cost/cost.h"

namespace fovea::systems::cost {
namespace {

// Where the first curve rises above the second, by linear interpolation of the logarithms; NaN if
// it does not.
double rises_above(const torch::Tensor& n, const torch::Tensor& first,
                   const torch::Tensor& second) {
  for (int64_t i = 0; i + 1 < n.size(0); ++i) {
    const auto gap = [&](int64_t at) {
      return std::log(first[at].item<double>() / second[at].item<double>());
    };
    const double here = gap(i), there = gap(i + 1);
    if (here <= 0 && there > 0) {
      const double a = std::log(n[i].item<double>()), b = std::log(n[i + 1].item<double>());
      return std::exp(a + (b - a) * -here / (there - here));
    }
  }
  return std::nan("");
}

}  // namespace

Model::Model(int64_t rows, int64_t points, std::string sweep, int64_t kernel)
    : over(std::move(sweep)), k(kernel) {
  lengths = register_buffer("lengths", torch::zeros({rows, points}, torch::kFloat64));
  widths = register_buffer("widths", torch::zeros({rows, points}, torch::kFloat64));
  seconds = register_buffer("seconds", torch::zeros({rows, 3, points}, torch::kFloat64));
  bytes = register_buffer("bytes", torch::zeros({rows, 3, points}, torch::kFloat64));
  threads = register_buffer("threads", torch::zeros({1}, torch::kFloat64));
}

double Model::operations(size_t layer, int64_t row, int64_t point) const {
  const auto n = lengths[row][point].item<double>(), width = widths[row][point].item<double>();
  return layer == 0   ? attention_operations(n, width)
         : layer == 1 ? lstm_operations(n, width)
                      : convolution_operations(n, width, static_cast<double>(k));
}

double Model::crossing(int64_t row) const {
  const torch::Tensor attention = seconds[row][0], lstm = seconds[row][1];
  return over == "n" ? rises_above(swept(row), attention, lstm)
                     : rises_above(swept(row), lstm, attention);
}

double Model::predicted(int64_t row) const {
  return over == "n" ? predicted_crossing(widths[row][0].item<double>())
                     : lengths[row][0].item<double>() / predicted_crossing(1);
}

}  // namespace fovea::systems::cost
